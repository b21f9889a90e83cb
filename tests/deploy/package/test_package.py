# SPDX-License-Identifier: Apache-2.0
"""cmake --install and the Debian package: what is in them, that the programs run from there, and how far the service is
confined."""

import os
import re
import shutil
import subprocess

import pytest

import manifests
from harness import settings
from harness.server import Server

BUILD = settings.bin_dir().parent
SERVICE = "lib/systemd/system/attendant.service"
MAX_EXPOSURE = 20  # of 100; systemd-analyze calls it 2.0

pytestmark = pytest.mark.skipif(not (BUILD / "CPackConfig.cmake").exists(), reason=f"{BUILD} is no build folder")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that cmake --install filled."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="module")
def unpacked(package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
    return folder


def try_programs(folder, files, monkeypatch):
    """Starts the installed server and asks it with the installed command. The build folder's libraries are not used."""
    monkeypatch.setattr(settings, "bin_dir", lambda: folder / "bin")
    loaded = subprocess.run(["ldd", folder / "bin/attendant-server"], check=True, capture_output=True, text=True).stdout
    assert "not found" not in loaded
    for line in loaded.splitlines():
        path = line.partition("=> ")[2].split(" ")[0]
        assert not path or path.startswith(("/lib", "/usr/lib", str(folder))), line
    server = Server(files, {"tiny": settings.TINY_MODEL})
    try:
        server.wait_ready()
        subprocess.run([folder / "bin/attendant", "health", f"--server={server.grpc}"], check=True)
    finally:
        server.stop()


def test_installed_programs_run(installed, tmp_path, monkeypatch):
    try_programs(installed, tmp_path, monkeypatch)


def test_packaged_programs_run(unpacked, tmp_path, monkeypatch):
    try_programs(unpacked / "usr", tmp_path, monkeypatch)


def test_contents(package, unpacked):
    field = lambda name: subprocess.run(["dpkg-deb", "--field", package, name], check=True, capture_output=True,  # noqa: E731
                                        text=True).stdout.strip()
    assert field("Package") == "attendant" and field("Version") == manifests.version()
    assert package.name == f"attendant_{manifests.version()}_amd64.deb"
    assert re.search(r"\blibc6\b", field("Depends")) and re.search(r"\blibgrpc\+\+", field("Depends"))
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    assert {"usr/bin/attendant", "usr/bin/attendant-server", "usr/" + SERVICE, "usr/share/doc/attendant/docs/flags.md"} <= files
    allowed = re.compile(r"usr/(bin/attendant(-server)?|lib/systemd/system/attendant\.service|share/doc/attendant/[\w./-]+|"
                         r"lib/[\w/-]*attendant/libdnnl\.so[\d.]*)$")
    assert not [name for name in files if not allowed.match(name)]


def test_no_package_without_its_dependencies(tmp_path):
    nowhere = [word for path in ("SYSTEM_ENVIRONMENT", "CMAKE_SYSTEM") for word in ("-D", f"CMAKE_FIND_USE_{path}_PATH=OFF")]
    made = subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", tmp_path, *nowhere],
                          capture_output=True, text=True)
    assert made.returncode != 0 and "dpkg-shlibdeps is not installed" in made.stdout + made.stderr
    assert not [*tmp_path.glob("*.deb")]


def test_scripts_of_the_package(package, tmp_path):
    subprocess.run(["dpkg-deb", "--control", package, tmp_path / "control"], check=True)
    scripts = [tmp_path / "control" / name for name in ("postinst", "prerm", "postrm")]
    for script in scripts:
        assert os.access(script, os.X_OK)
        subprocess.run(["sh", "-n", script], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", *scripts], check=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_service(installed):
    unit = installed / SERVICE
    text = unit.read_text()
    subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={MAX_EXPOSURE}", unit],
                   check=True, stdout=subprocess.DEVNULL)
    here = installed / "attendant.service"
    here.write_text(text.replace("/usr/bin/", f"{installed}/bin/").replace("file:/usr", "file:/"))
    verified = subprocess.run(["systemd-analyze", "verify", here], capture_output=True, text=True)
    assert verified.returncode == 0 and "attendant.service" not in verified.stderr, verified.stderr


def test_a_fault_that_passes_does_not_end_the_service(installed, tmp_path):
    """A disk or an address that comes late. Five starts in ten seconds would be systemd's last ones."""
    unit = (installed / SERVICE).read_text()
    assert {"Restart=always", "StartLimitIntervalSec=0", "After=network-online.target"} <= set(unit.splitlines())
    assert int(re.search(r"^RestartSec=(\d+)$", unit, re.MULTILINE)[1]) > 0
    final = re.search(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)[1].split()
    flags = re.search(r'Environment="ATTENDANT_FLAGS=(.*)"', unit)[1].split()
    elsewhere = "192.0.2.1:8001"  # of no machine
    for given, fault in (((*flags, f"--model_repository={tmp_path}/later"), "No such file"),
                         ((*flags, f"--model_repository={tmp_path}", f"--listen={elsewhere}"), elsewhere)):
        ended = subprocess.run([installed / "bin/attendant-server", "--http_listen=127.0.0.1:0", *given],
                               capture_output=True, text=True, timeout=60)
        said = ended.stdout + ended.stderr
        assert ended.returncode and str(ended.returncode) not in final and fault in said, said


def test_flags_of_the_service(installed, start_server, tmp_path):
    """Those in the unit are the server's own, on a folder of models."""
    given = re.search(r'Environment="ATTENDANT_FLAGS=(.*)"', (installed / SERVICE).read_text()).group(1).split()
    shutil.copytree(settings.TINY_MODEL, tmp_path / "models/tiny")
    folder = "/var/lib/attendant/models"
    assert f"--model_repository={folder}" in given
    postinst = (settings.ROOT / "deploy/debian/postinst").read_text()
    assert f"mkdir -p {folder}" in postinst
    start_server({}, *(flag.replace(folder, str(tmp_path / "models")) for flag in given)).wait_ready()
