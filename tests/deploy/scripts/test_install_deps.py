# SPDX-License-Identifier: Apache-2.0
"""deploy/install-deps.sh, as a user with sudo."""

import os
import signal

import pytest


@pytest.fixture
def policy(scripts, tmp_path):
    """The file that keeps services from being started, elsewhere. All but prometheus is installed; its installation waits for
    `release`, and then says whether the file is there."""
    path = tmp_path / "policy-rc.d"
    scripts.replace("deploy/install-deps.sh", "/usr/sbin/policy-rc.d", str(path))
    scripts.packages_are_installed()
    scripts.stub("dpkg-query", '[[ "$*" == *prometheus* ]] || echo "install ok installed"')
    scripts.stub("id", "echo 1000")
    scripts.stub("sudo", '"$@"')
    scripts.stub("apt-get", f"""[[ "$*" != *" prometheus" ]] || {{
      echo installs >>"$LOG"; read -r _ <"$GATE"; [ ! -x {path} ] || echo held >>"$LOG"; }}""")
    return path


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_services_may_start_again_after_an_interrupt(scripts, policy, signal_number):
    process = scripts.start("deploy/install-deps.sh", "test")
    scripts.wait_for("the installation", lambda lines: "installs" in lines)
    assert policy.exists()
    os.killpg(process.pid, signal_number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == (130 if signal_number == signal.SIGINT else 143), output
    assert not policy.exists()


def test_services_may_not_start_while_a_package_is_installed(scripts, policy):
    """The script alone gets the signal."""
    process = scripts.start("deploy/install-deps.sh", "test")
    scripts.wait_for("the installation", lambda lines: "installs" in lines)
    os.kill(process.pid, signal.SIGTERM)
    scripts.release()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 143, output
    assert "held" in scripts.lines() and not policy.exists()
