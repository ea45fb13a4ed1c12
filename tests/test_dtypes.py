"""Facts of the DataTypes against torch's."""

from __future__ import annotations

import pytest

from tritonfuser.dtypes import DataType


@pytest.mark.parametrize("dtype", [d for d in DataType if d.info.torch is not None])
def test_an_element_takes_as_many_bytes_as_in_torch(dtype: DataType) -> None:
    assert dtype.info.torch is not None
    assert dtype.info.bytes == dtype.info.torch.itemsize
