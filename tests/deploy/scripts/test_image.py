# SPDX-License-Identifier: Apache-2.0
"""deploy/image.sh without a Docker engine, as a user with sudo."""

import pytest


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
