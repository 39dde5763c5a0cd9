"""Exercises of notebook 06: a second try or none, waits with a ceiling, a safe write, a retry that gives None."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from agentloop import Json
from looplab.cases import Case, Exercise, Raises

AGAIN = Exercise(
    "06-again",
    {"worth_it": FunctionType},
    [
        Case("worth_it(TimeoutError(), False)", "yes: a read that was late may be in time next", True),
        Case("worth_it(ConnectionError(), False)", "yes: the connection may hold next time", True),
        Case("worth_it(ConnectionResetError(), False)", "yes: it is a ConnectionError", True),
        Case("worth_it(KeyError('Atlantis'), False)", "no: the city will not exist next time either", False),
        Case("worth_it(ValueError(), False)", "no: only the model can mend its arguments", False),
        Case("worth_it(PermissionError(), False)", "no: it is an OSError too, and does not pass by itself", False),
        Case("worth_it(TimeoutError(), True)", "no: the write may have happened, and only its answer was lost", False),
        Case("worth_it(ConnectionError(), True)", "no: the same", False),
    ],
    (
        "Two questions: is it a failure that may pass by itself? And what if the call took effect after all?",
        "TimeoutError and ConnectionError may pass. PermissionError is a sibling of theirs, so OSError is too wide.",
        "isinstance(error, (TimeoutError, ConnectionError)), and only for a call that does not write.",
    ),
)

WAITS = Exercise(
    "06-waits",
    {"waits": FunctionType},
    [
        Case("waits(1, 3, 60)", "the three waits of this notebook", [1, 2, 4]),
        Case("waits(1, 8, 30)", "doubled up to 16; 32 is above 30, so 30 from there on", [1, 2, 4, 8, 16, 30, 30, 30]),
        Case("waits(0.5, 4, 2)", "0.5 and 1, then 2, which is the longest", [0.5, 1, 2, 2]),
        Case("waits(5, 1, 60)", "one wait", [5]),
        Case("waits(1, 0, 60)", "no wait", []),
    ],
    (
        "What is wait number n, counted from 0, if there were no ceiling?",
        "It is first * 2**n. And min takes the smaller of two numbers.",
        "[min(first * 2**n, longest) for n in range(count)].",
    ),
)


# --- Safe to repeat ------------------------------------------------------------------------------------------


class Bank:
    """What `pay` stands for: it numbers the payments, and can fail before the first."""

    def __init__(self, fails_first: bool = False, answers: bool = True) -> None:
        self.paid: list[int] = []
        self._fails, self._answers = fails_first, answers

    def pay(self, amount: int) -> Json | None:
        if self._fails:
            self._fails = False
            raise ValueError("the account is locked")
        self.paid.append(amount)
        return {"payment": f"P{len(self.paid)}", "amount": amount} if self._answers else None


def paid(once: Any, *requests: tuple[str, int], **bank: bool) -> list[int]:
    """Return what was paid after these requests."""
    made = Bank(**bank)
    safe_pay = once(made.pay)
    for request in requests:
        try:
            safe_pay(*request)
        except ValueError:
            pass
    return made.paid


def answers(once: Any, *requests: tuple[str, int]) -> list[str]:
    """Return the numbers of the payments that the answers name."""
    safe_pay = once(Bank().pay)
    return [safe_pay(*request)["payment"] for request in requests]


def two_banks(once: Any) -> list[int]:
    """Return what two banks paid for one request each, with the same id."""
    banks = Bank(), Bank()
    for bank, safe_pay in [(bank, once(bank.pay)) for bank in banks]:
        safe_pay("r1", len(bank.paid) + 1)
    return [amount for bank in banks for amount in bank.paid]


ONCE = Exercise(
    "06-once",
    {"once": FunctionType},
    [
        Case('paid(once, ("r1", 5000))', "one payment", [5000], given="one request: what was paid"),
        Case(
            'paid(once, ("r1", 5000), ("r1", 5000))',
            "one payment: the second request has the same id",
            [5000],
            given="the same request twice: what was paid",
        ),
        Case(
            'answers(once, ("r1", 5000), ("r2", 70), ("r1", 5000))',
            "the third answer is the first one again",
            ["P1", "P2", "P1"],
            given="r1, r2, and r1 again: the payments that the answers name",
        ),
        Case(
            'paid(once, ("r1", 5000), ("r2", 5000))',
            "two payments: two ids are two requests, though the amounts are the same",
            [5000, 5000],
            given="two requests for the same amount: what was paid",
        ),
        Case(
            'paid(once, ("r1", 5000), ("r1", 5000), answers=False)',
            "one payment",
            [5000],
            given="the same request twice, to a bank whose pay returns None: what was paid",
        ),
        Case(
            'paid(once, ("r1", 5000), ("r1", 5000), fails_first=True)',
            "one payment: what was not paid must not be remembered as paid",
            [5000],
            given="the same request twice, where pay raises the first time: what was paid",
        ),
        Case("two_banks(once)", "one payment by each bank", [1, 1], given="two banks, each with a request r1"),
    ],
    (
        "What must be remembered between two calls, and where does it live so that each bank has its own?",
        "A dictionary from request_id to result, made inside once. A result may be None: ask whether the id is in it.",
        "In safe_pay: if request_id not in done: done[request_id] = pay(amount). Then return done[request_id].",
    ),
    lambda: {"paid": paid, "answers": answers, "two_banks": two_banks},
)


# --- Find the bug: a retry that gives nothing ----------------------------------------------------------------


def tried(retrying: Any, *errors: Exception, result: Any = "30 C") -> tuple[Any, int, list[float]]:
    """Return what came of a tool that raises these errors in turn, how often it was tried, and the waits."""
    left, tries, slept = list(errors), list[str](), list[float]()

    def tool(city: str) -> Any:
        tries.append(city)
        if left:
            raise left.pop(0)
        return result

    patient = retrying(tool, (1, 2, 4), slept.append)
    try:
        came: Any = patient(city="Pune")
    except Exception as error:
        came = type(error).__name__
    return came, len(tries), slept


def busy(times: int) -> list[Exception]:
    """Return so many errors that may pass."""
    return [ConnectionError("busy") for _ in range(times)]


BUG = Exercise(
    "06-bug",
    {"retrying": FunctionType},
    [
        Case(
            "tried(retrying)",
            "the result, after one try and no wait",
            ("30 C", 1, []),
            given="a tool that works: result, tries, waits",
        ),
        Case(
            "tried(retrying, *busy(2))",
            "the result, after three tries",
            ("30 C", 3, [1, 2]),
            given="a tool that fails twice: result, tries, waits",
        ),
        Case(
            "tried(retrying, *busy(3))",
            "the result, after four tries: there is one more than there are waits",
            ("30 C", 4, [1, 2, 4]),
            given="a tool that fails three times: result, tries, waits",
        ),
        Case(
            "tried(retrying, *busy(9))",
            "the exception of the fourth try, which the registry makes an error text",
            ("ConnectionError", 4, [1, 2, 4]),
            given="a tool that stays down: what came, tries, waits",
        ),
        Case(
            "tried(retrying, TimeoutError(), ValueError(), *busy(9))",
            "the ValueError of the second try, at once",
            ("ValueError", 2, [1]),
            given="a timeout, then a wrong argument: what came, tries, waits",
        ),
        Case(
            "tried(retrying, *busy(1), result=0)",
            "0, which is a result like any other",
            (0, 2, [1]),
            given="a tool whose result is 0: result, tries, waits",
        ),
        Case(
            "retrying(lambda city: 1 / 0, (1, 2, 4), print)(city='Pune')",
            "a ZeroDivisionError: a bug of the tool is not tried again",
            Raises(ZeroDivisionError),
            given="a tool with a bug",
        ),
    ],
    (
        "What does a Python function return when its loop is over and there is no return?",
        "After the last wait nobody tries again. One more call of fn is missing, and nothing catches what it raises.",
        "Add `return fn(**args)` after the loop, outside of any try.",
    ),
    lambda: {"tried": tried, "busy": busy},
    shipped="""
def retrying(fn, waits, sleep):
    def patient(**args):
        for wait in waits:
            try:
                return fn(**args)
            except (TimeoutError, ConnectionError):
                sleep(wait)
    return patient
""",
)

EXERCISES = [AGAIN, WAITS, ONCE, BUG]
