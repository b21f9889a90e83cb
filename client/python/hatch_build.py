# SPDX-License-Identifier: Apache-2.0
"""Compiles the .proto files into the package: descriptors, which the package reads at run time, and types for mypy.

Descriptors fit every version of the protobuf runtime. Code that protoc generates for Python runs only with its own major
version of the runtime and the next one, and other packages of an environment often pin another."""

import pathlib
import shutil
import tempfile
from typing import Any

from grpc_tools import protoc
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "attendant/v1"
OTHERS = ("grpc/health/v1/health.proto", "inference/grpc_service.proto")  # without types


class CompileProtos(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the compiled files to a wheel. An editable install has them in the source tree."""
        self.folder = None
        if self.target_name != "wheel":
            return
        if version == "editable":
            self._compile(pathlib.Path(self.root))
            return
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attendant-protos-"))
        (self.folder / PACKAGE).mkdir(parents=True)
        self._compile(self.folder)
        for path in (self.folder / PACKAGE).iterdir():
            build_data["force_include"][str(path)] = f"{PACKAGE}/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder)

    def _compile(self, out: pathlib.Path) -> None:
        root = pathlib.Path(self.root)
        protos = next(path for path in (root / "proto", root.parents[1] / "proto") if path.is_dir())
        own = [path.relative_to(protos).as_posix() for path in sorted((protos / PACKAGE).glob("*.proto"))]
        include = f"--proto_path={protos}"
        for arguments in ([f"--descriptor_set_out={out / PACKAGE / 'descriptors.binpb'}", "--include_imports",
                           *own, *OTHERS], [f"--pyi_out={out}", *own]):
            if protoc.main(["protoc", include, *arguments]) != 0:
                raise RuntimeError(f"protoc {' '.join(arguments)} failed")
