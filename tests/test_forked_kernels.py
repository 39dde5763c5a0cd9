"""The kernels that run the notebooks' tests start, answer and end without a port that another process could take."""

import os
import signal
from pathlib import Path

import pytest
from jupyter_client import KernelManager

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kernels are forked only where the system can fork")


@pytest.fixture
def kernel():
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    yield manager
    manager.shutdown_kernel(now=True)


def answer(manager, code):
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        return client.execute_interactive(code, output_hook=lambda message: None, timeout=60,
                                          user_expressions={"it": "it"})["content"]["user_expressions"]["it"]["data"]
    finally:
        client.stop_channels()


def test_a_kernel_listens_on_files_of_its_own_and_on_no_port(kernel):
    assert answer(kernel, "it = 6 * 7") == {"text/plain": "42"}
    sockets = sorted(Path(kernel.ip).parent.iterdir())
    assert [path.is_socket() for path in sockets] == [True] * 5
    kernel.shutdown_kernel(now=True)
    assert not sockets[0].parent.exists()


def test_a_kernel_started_again_has_forgotten_and_answers(kernel):
    answer(kernel, "it = 1")
    kernel.restart_kernel(now=True)
    assert answer(kernel, "it = 'it' in globals()") == {"text/plain": "False"}


def test_a_signal_to_a_kernel_that_has_died_is_no_fault(kernel):
    process = kernel.provisioner.process
    process.kill()
    process.join()
    process.send_signal(signal.SIGINT)
    assert process.poll() == -signal.SIGKILL
