# SPDX-License-Identifier: Apache-2.0
"""deploy/image.sh for a user with sudo."""

import pytest

# An engine whose image is as it should be.
DOCKER = r"""
case "$*" in
  "save --output "*) touch "$3" ;;
  *" embed --similarity --json "*)
    echo '{"cosines": [[1, 0.814024, 0.022497], [0.814024, 1, 0.022423], [0.022497, 0.022423, 1]]}' ;;
  "image inspect "*) printf 'CMD\nattendant\nhealth\n' ;;
  "inspect "*) echo 0 ;;
  history*) echo 1 ;;
  "run --detach "*) echo made ;;
  "run --rm "*) printf '%s\n' 'Package: base' 'Status: install ok installed' 'Version: 1' 'Architecture: amd64' ;;
esac
"""


@pytest.fixture
def asked(scripts):
    """Runs it, and returns what it asks sudo for: the variables that stay, and the command."""
    scripts.stub("docker", "exit 1")
    scripts.stub("id", "echo 1000")
    scripts.stub("sudo", 'printf "%s\\n" "$@" >>"$LOG"')

    def run(*arguments, **environment):
        code, output = scripts.run("deploy/image.sh", *arguments, **environment)
        assert code == 0, output
        lines = scripts.lines()
        kept = [line.partition("=")[2].split(",") for line in lines if line.startswith("--preserve-env=")]
        return set(sum(kept, [])), [line for line in lines if not line.startswith("--preserve-env=")]
    return run


def test_sudo_keeps_what_downloads_need(scripts, asked):
    kept, command = asked("--cuda")
    assert {"PIP_CERT", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "SSL_CERT_FILE", "https_proxy", "no_proxy"} <= kept
    assert command == [str(scripts.root / "deploy/image.sh"), "--cuda"]


def test_root_does_not_write_into_the_cache_of_a_user(asked):
    kept, command = asked()
    assert "ATTENDANT_CACHE" not in kept and not any("ATTENDANT_CACHE" in word for word in command)


@pytest.mark.parametrize("caller", [{"SUDO_UID": "1234", "SUDO_GID": "567"}, {"SUDO_UID": "", "SUDO_GID": ""}])
def test_what_root_writes_belongs_to_the_user_who_called_sudo(scripts, tmp_path, caller):
    scripts.model_is_there()
    scripts.stub("docker", DOCKER)
    scripts.stub("id", "echo 0")
    scripts.stub("chown", 'echo "chown $*" >>"$LOG"')
    (scripts.root / "CMakeLists.txt").write_text("project(attendant VERSION 0.1.0)\n")
    files = [tmp_path / "image.tar", tmp_path / "sbom.json"]
    code, output = scripts.run("deploy/image.sh", "--output", files[0], "--sbom", files[1], **caller)
    assert code == 0 and all(file.exists() for file in files), output
    given = {f"chown 1234:567 {file}" for file in files} if caller["SUDO_UID"] else set()
    assert set(scripts.lines()) == given
