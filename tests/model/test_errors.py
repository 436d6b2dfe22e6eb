import pickle

import pytest

from cvxleak import errors


def test_one_exception_catches_all():
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.CvxleakError)


def test_validation_errors_are_value_errors():
    # Code that knows nothing of cvxleak catches them too.
    assert issubclass(errors.ValidationError, ValueError)


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_travel_between_processes(name):
    error = getattr(errors, name)("channel: found 2 rows")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == "channel: found 2 rows"
