import pickle

import pytest

from cvxleak.core import errors

ERRORS = [name for name in errors.__all__ if name != "SolveInterrupted"]


def test_one_exception_catches_all():
    for name in ERRORS:
        assert issubclass(getattr(errors, name), errors.CvxleakError)


def test_ctrl_c_is_no_error():
    # Code that goes on after an error must not go on after Ctrl-C.
    assert issubclass(errors.SolveInterrupted, KeyboardInterrupt)
    assert not issubclass(errors.SolveInterrupted, Exception)
    copy = pickle.loads(pickle.dumps(errors.SolveInterrupted(bound=0.5)))
    assert (type(copy), copy.bound) == (errors.SolveInterrupted, 0.5)


def test_validation_errors_are_value_errors():
    # Code that knows nothing of cvxleak catches them too.
    assert issubclass(errors.ValidationError, ValueError)


@pytest.mark.parametrize("name", ERRORS)
def test_errors_travel_between_processes(name):
    error = getattr(errors, name)("channel: found 2 rows")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == "channel: found 2 rows"


@pytest.mark.parametrize(
    ("message", "argument", "detail"),
    [
        ("channel: found 2 rows", "channel", "found 2 rows"),
        ("alphabets[0]: found: nothing", "alphabets[0]", "found: nothing"),
        ("multiplicities, contexts: found 2 and 3", "multiplicities, contexts", "found 2 and 3"),
        ("no argument is named", None, "no argument is named"),
        ("the file is not JSON: line 1: x", None, "the file is not JSON: line 1: x"),
        ("--tol: found 1", None, "--tol: found 1"),
        ("", None, ""),
    ],
)
def test_the_argument_is_the_head_of_the_message(message, argument, detail):
    error = errors.ValidationError(message)
    assert (error.argument, error.detail, str(error)) == (argument, detail, message)
