"""Files of made-up people."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest


@pytest.fixture
def ages() -> np.ndarray:
    return np.random.default_rng(5).integers(17, 91, size=2_000)


@pytest.fixture
def csv_file(tmp_path: Path, ages: np.ndarray) -> Path:
    file = tmp_path / "people.csv"
    rows = [f'{j},{age},"Doe, {j}"' for j, age in enumerate(ages)]
    file.write_text("id,age,name\n" + "\n".join(rows) + "\n")
    return file


@pytest.fixture
def parquet_file(tmp_path: Path, ages: np.ndarray) -> Path:
    file = tmp_path / "people.parquet"
    names = [f"Doe, {j}" for j in range(ages.size)]
    table = pa.table({"age": ages, "height": ages * 1.5, "name": names, "adult": ages > 17})
    pa.parquet.write_table(table, file)
    return file
