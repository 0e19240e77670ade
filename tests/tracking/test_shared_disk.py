from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.tracking.shared_disk import locks_stay_here

MOUNTS = r"""
22 1 253:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /nfs rw,relatime shared:2 - nfs4 host:/x rw,vers=4.2,local_lock=none
31 22 0:41 / /old rw,relatime - nfs host:/y rw,vers=3,nolock,local_lock=all
32 22 0:42 / /with\040space rw - nfs host:/z rw,local_lock=flock
33 31 253:2 / /old/inside rw - xfs /dev/vdb rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "stay"),
    [
        ("/home/me", False),
        ("/nfs/studies/s", False),
        ("/old/studies/s", True),
        ("/older", False),
        ("/with space/s", True),
        ("/old/inside/s", False),
    ],
)
def test_only_a_network_mount_that_says_so_keeps_locks_to_itself(path: str, stay: bool) -> None:
    assert locks_stay_here(Path(path), MOUNTS) is stay


def test_the_mounts_of_this_machine_can_be_read(tmp_path: Path) -> None:
    assert locks_stay_here(tmp_path) is False
