"""Starts the kernels of the notebooks' tests sooner, where pytest loads this, as pyproject.toml has it do.

Each kernel is forked from one process that has imported what most notebooks import; that takes longer than most
notebooks run. JupyterLab and `looplab.build` start kernels of their own, and so does Windows, which cannot fork.
"""

from __future__ import annotations

import multiprocessing.context
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import EntryPoint
from typing import Any

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

IMPORTED = ["ipykernel.kernelapp", "ipykernel.debugger", "matplotlib.backends.backend_agg", "looplab.exercises",
            "looplab.plots", "looplab.prediction", "looplab.recordings", "looplab.show", "looplab.worlds"]


def pytest_configure() -> None:
    """Have jupyter_client, with which nbval starts kernels, fork them."""
    if hasattr(os, "fork"):
        multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED)
        factory = KernelProvisionerFactory.instance()
        factory.provisioners["forked"] = EntryPoint("forked", f"{__name__}:ForkedKernel", factory.GROUP_NAME)
        factory.default_provisioner_name = "forked"


class ForkedKernel(LocalProvisioner):
    """A kernel whose process is forked, and whose sockets are files.

    A port that is free when the kernel is started can be taken before the kernel binds it: then the kernel dies.
    """

    folder = ""

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix="kernel-")
            self.parent.transport = "ipc"
            self.parent.ip = os.path.join(self.folder, "socket")
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        self.cwd = kwargs.get("cwd") or os.getcwd()
        self.process = KernelProcess(target=run_kernel, args=(cmd, self.cwd, kwargs["env"]))
        self.process.start()
        self.pid = self.process.pid
        return self.connection_info

    async def cleanup(self, restart: bool = False) -> None:
        if not restart:
            shutil.rmtree(self.folder, ignore_errors=True)


class KernelProcess(getattr(multiprocessing.context, "ForkServerProcess", object)):
    """A forked process with the names of subprocess.Popen that LocalProvisioner uses."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        return self.exitcode

    def wait(self) -> int | None:
        self.join()
        return self.exitcode

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def run_kernel(command: list[str], folder: str, environment: dict[str, str]) -> None:
    """Do in this process what a kernel's command line does in its own.

    But keep no history, and make no tracebacks: no test reads them, and the first takes long.
    """
    from ipykernel.kernelapp import IPKernelApp

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    without = ["--HistoryManager.enabled=False", "--InteractiveShell.xmode=Minimal"]
    sys.argv = command[command.index("ipykernel_launcher"):] + without
    IPKernelApp.launch_instance()
