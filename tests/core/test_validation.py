"""What is said of wrong arguments, at the one place where they are read."""

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import frozen_array, label_tuple, plain_label, probability_rows


@pytest.mark.parametrize("shape", [(), (2,), (2, 2, 2)])
def test_dimensions(shape):
    with pytest.raises(ValidationError, match=r"^Q: expected 2 dimension"):
        frozen_array(np.ones(shape), "Q", 2)


def test_labels():
    assert label_tuple([0.5, 1, (True, "a")], 3, "labels") == (0.5, 1, (True, "a"))
    assert type(plain_label((np.int64(1),), "label")[0]) is int
    for label in (np.nan, (1, np.nan)):
        with pytest.raises(ValidationError, match=r"^label: .*NaN"):
            plain_label(label, "label")


@pytest.mark.parametrize("row", [[0.5, 0.4], [np.inf, 0.0], [-0.5, 1.5], [np.nan, 1.0]])
def test_rows_are_laws(row):
    with pytest.raises(ValidationError, match=r"^p: "):
        probability_rows(row, "p", 1)


def test_tables_of_counts_are_sent_where_they_belong():
    with pytest.raises(ValidationError, match=r"for counts there is .*channels_from_counts"):
        probability_rows([[3, 1], [2, 2]], "p", 2)
