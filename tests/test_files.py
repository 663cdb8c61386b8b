"""Files are written completely or not at all."""

import os
import stat

import pytest

from pairstep.files import replacing, write_at_once


def test_a_full_disk_leaves_the_old_file(tmp_path):
    resource = pytest.importorskip("resource")
    write_at_once(tmp_path / "a", "first")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):  # after the first 1000 bytes
            write_at_once(tmp_path / "a", 5000 * "second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "first"


def test_an_error_while_writing_leaves_the_old_file(tmp_path):
    write_at_once(tmp_path / "a", "first")

    def write_half():
        with replacing(tmp_path / "a") as file:
            file.write(b"sec")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "first"


def test_a_file_is_not_replaced_before_it_is_complete(tmp_path):
    with replacing(tmp_path / "a") as file:
        file.write(b"all of it")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"all of it"


def test_permissions_are_those_of_the_file_or_of_the_user(tmp_path):
    before = os.umask(0o027)
    try:
        write_at_once(tmp_path / "new", "")
        write_at_once(tmp_path / "old", "")
        (tmp_path / "old").chmod(0o600)
        write_at_once(tmp_path / "old", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    write_at_once(tmp_path / "folder" / "file", "old")
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "file")
    write_at_once(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "file").read_text() == "new"
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["file"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_at_once(tmp_path / "pipe", "said")
        assert os.read(reader, 100) == b"said"
    finally:
        os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("path", ["absent/a", "file/a", ""])
def test_errors_name_the_requested_file(path, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"o such file|ot a directory|s a directory") as refused:
        write_at_once(tmp_path / path, "")
    assert refused.value.filename == str(tmp_path / path)
