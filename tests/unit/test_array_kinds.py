"""Labels of outcomes that come as labelled arrays and nullable frames name the models."""

from types import SimpleNamespace

import numpy as np
import pytest

from scorio import rank, sequential

R = (np.random.default_rng(5).random((3, 40, 4)) < np.array([0.9, 0.5, 0.2])[:, None, None]).astype(int)
NAMES = ("best", "middle", "last")


class Labelled:
    """Stands for an xarray.DataArray."""

    dims = ("model", "question", "trial")
    coords = {"model": SimpleNamespace(values=np.array(NAMES))}  # noqa: RUF012

    def __array__(self, dtype=None, copy=None):
        return R if dtype is None else R.astype(dtype)


def test_labels_of_arrays_are_kept():
    assert sequential.board(Labelled()).names == NAMES
    assert rank.avg(Labelled()).names == NAMES


def test_nullable_frames_name_models():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(R[:, :, 0], index=list(NAMES)).astype("Int64")
    frame.iloc[0, 3] = pandas.NA
    assert rank.bayes(frame, missing=np.nan).names == NAMES
    assert sequential.board(frame, missing=np.nan).names == NAMES
