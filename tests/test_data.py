"""Reading samples from files with arbitrary content."""

import io
import tracemalloc
import zipfile

import numpy as np
import pandas
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pairstep.data import read_samples

TEXT = st.text(alphabet='0123456789.:,;-+e# \t\r\nqidnaxü"\x00', max_size=60)


def attempt(path, content, **options):
    """Read valid samples, or return a one-line error."""
    path.write_bytes(content)
    try:
        samples = read_samples(path, **options)
    except ValueError as error:
        return str(error)
    assert samples.X.ndim == 2
    assert samples.X.shape[0] > 0
    assert samples.y is None or samples.y.shape == samples.X.shape[:1]
    return ""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("data") / "samples"


# Each of these was once misread, or raised another error than ValueError.
@given(text=TEXT)
@example("1 1:2 1:3")
@example("1 2:2 1:3")
@example("1 qid:3 1:2")
@example("1 18446744073709551617:1")
@example("1 -1:1")
@example("1 1:\x00")
@example("1,2 1:1")
@example('"')
@example('a,"b\n1,2\n')
@example(",")
@example(";\n;")
def test_any_text(path, text):
    attempt(path, text.encode())
    attempt(path.with_suffix(".csv"), text.encode())
    attempt(path, b"1 1:2\n2 3:4\n" + text.encode(), n_features=9)
    attempt(path.with_suffix(".csv"), b"a,b\n1,2\n" + text.encode(), labeled=False)


@given(content=st.binary(max_size=100))
def test_any_bytes(path, content):
    for begin in (b"", b"PK\x03\x04", b"PAR1"):
        attempt(path, begin + content)
    for suffix, begin in ((".gz", b"\x1f\x8b\x08"), (".bz2", b"BZh9"), (".xz", b"\xfd7zXZ\x00")):
        attempt(path.with_suffix(suffix), content)
        attempt(path.with_suffix(suffix), begin + content)


@given(data=st.data())
def test_any_wrong_byte_of_an_npz_file_is_handled(path, data):
    file = io.BytesIO()
    (np.savez_compressed if data.draw(st.booleans()) else np.savez)(file, X=np.eye(4), y=np.ones(4))
    changed = bytearray(file.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    attempt(path, bytes(changed))


def most_memory(path, content):
    tracemalloc.start()
    try:
        said = attempt(path, content)
        return said, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_wide_sample_stays_sparse(path):
    said, memory = most_memory(path, b"1 1:1\n2 2147483647:1\n")
    assert said == ""
    assert memory < 10**7
    said, memory = most_memory(path, b"1 1:1\n2 2147483648:1\n")
    assert "line 2: an index is larger than 2147483647" in said
    assert memory < 10**7


def test_npz_files_that_claim_too_much_are_refused(path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", b"\x00" * 3 * 10**8)
    said, memory = most_memory(path, file.getvalue())
    assert "claims to hold" in said
    assert memory < 10**7


def test_labels_keep_their_type(path):
    def labels(content, **options):
        path.write_bytes(content)
        return read_samples(path, **options).y

    assert labels(b"+1 1:1\n-1 1:2\n").tolist() == [1, -1]
    assert labels(b"+1 1:1\n-1 1:2\n").dtype == np.int64
    assert labels(b"0.5 1:1\n-1 1:2\n").dtype == np.float64
    assert labels(b"1,yes\n2,no\n").tolist() == ["yes", "no"]
    assert labels(b"1,7\n2,no\n").tolist() == ["7", "no"]
    assert labels(b"1e300,1e300\n2,1\n").dtype == np.float64
    assert labels(b"1,2\n", labeled=False) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b,c\n1,2,x\n\n3,four,y\n5,,x\n", "line 4, column b: 'four' is not a number"),
        (b"\n1;2;x\n3;;y\n", "line 3, column 2: '' is not a number"),
        (b"a,b,c\n1,2,x\n3,4\n", "line 3, column c: no label"),
        (b"a,b,c\n1,2,x\n3,y\n", "line 3, column b: 'y' is not a number"),
        (b"a,b,c\n1,2,x\n3,4,5,y\n", "Expected 3 fields in line 3, saw 4"),
        (b"a,b,c\n1,2\n3,4\n", "line 2 has 2 cells, but 3 names"),
        (b"a,b,c\n", "no samples"),
    ],
)
def test_the_line_and_the_column_of_a_bad_cell_are_named(path, content, message):
    assert message in attempt(path.with_suffix(".csv"), content)


def test_the_row_and_the_column_of_a_bad_cell_in_a_parquet_file_are_named(path):
    file = io.BytesIO()
    pandas.DataFrame({"a": [1.0, 2.0], "b": ["3", "x"], "label": [0, 1]}).to_parquet(file)
    assert "row 2, column b: 'x' is not a number" in attempt(path, file.getvalue())
    said = attempt(path, file.getvalue(), label="kind")
    assert "the table has no column 'kind'; it has a, b, label" in said


def test_tables_are_read_as_pandas_reads_them(path):
    path.write_bytes(b"a,b,yes\n0.1, 2 ,True\n+3,1e-3,False\n")
    samples = read_samples(path)
    assert samples.X.tolist() == [[0.1, 2.0], [3.0, 0.001]]
    assert samples.y.tolist() == [1, 0]
    path.write_bytes(b"a,label\n1,NA\n2,None\n")  # texts, not missing values
    assert read_samples(path).y.tolist() == ["NA", "None"]


def test_the_first_line_may_have_names(path):
    path.write_bytes('\ufeffhöhe;"a;b";kind\n1;2;x\n'.encode())
    samples = read_samples(path)
    assert samples.names == ["höhe", "a;b"]
    assert samples.y.tolist() == ["x"]
    path.write_bytes(b"1.5,x\n")
    assert read_samples(path).names is None


def test_a_header_may_be_numbered(path):
    def names(content):
        path.write_bytes(content)
        return read_samples(path).names

    assert names(b"0,1,2,y\n0.5,1,2,1\n0.1,2,2,0\n") == ["0", "1", "2"]
    assert names(b"1,2,y\n0.5,1,1\n") == ["1", "2"]
    assert names(b"0,1,kind\n0.5,1,a\n0.5,2,b\n") == ["0", "1"]
    assert names(b"y,0,1\n7,1,2\n8,2,3\n") == ["0", "1"]
    # These first lines are samples: a label occurs again, or the numbers do not count the columns.
    assert names(b"0,1,a\n0.5,1,b\n0.5,2,a\n") is None
    assert names(b"0,2,a\n0.5,1,b\n") is None
    assert names(b"1,yes\n2,no\n") is None


def test_a_byte_order_mark_is_ignored(path):
    path.write_bytes(b"\xef\xbb\xbf# a comment\n+1 1:2 3:4\n-1 2:1\n")
    samples = read_samples(path)
    assert samples.X.toarray().tolist() == [[2.0, 0.0, 4.0], [0.0, 1.0, 0.0]]
    assert samples.y.tolist() == [1, -1]
    path.write_bytes(b"\xef\xbb\xbf1 1:2\n1 2:x\n")
    with pytest.raises(ValueError, match="line 2"):
        read_samples(path)
    path.write_bytes(b"\xef\xbb\xbf1.5,2\n3,4\n")
    assert read_samples(path).X.tolist() == [[1.5], [3.0]]
