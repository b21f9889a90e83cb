# SPDX-License-Identifier: Apache-2.0
"""Of a model whose repository changes, only the versions that changed are loaded; the others serve on."""

import shutil

import numpy as np
import pytest
import tritonclient.grpc as triton

from harness.attendant import DEADLINE
from harness.model_folder import write_model
from harness.server import Server, wait_until

MODEL = "m.encoder"


class Repository:
    """A server of a repository with versions 1 and 2 of the model m, under `control`."""

    def __init__(self, folder, control):
        self.folder = folder / "repository" / "m"
        self.control = control
        for version in (1, 2):
            self.write(version)
        self.server = Server(folder, {}, "--dtype=f32", f"--model_repository={folder}/repository", "--max_model_versions=3",
                             f"--model_control={control}", "--repository_poll_s=1").wait_ready()
        self.client = triton.InferenceServerClient(self.server.grpc)

    def close(self):
        self.client.close()
        self.server.stop()

    def write(self, version, negate=False):
        """A version is never seen in part."""
        draft = self.folder / ".draft"
        write_model(draft, negate)
        self.remove(version)
        draft.rename(self.folder / str(version))

    def remove(self, version):
        if (self.folder / str(version)).exists():
            (self.folder / str(version)).rename(self.folder / ".removed")
            shutil.rmtree(self.folder / ".removed")

    def loads(self):
        """How often each version was loaded: {version: times}."""
        lines = self.server.log().splitlines()
        return {version: sum(f"model 'm' version {version} is ready after" in line for line in lines) for version in (1, 2, 3)}

    def failures(self):
        return self.server.log().count("model 'm' version 3 failed to load")

    def update(self, condition, fails=False):
        """Until the server has found the change: a client tells it, or it looks for itself."""
        if self.control == "explicit":
            if fails:
                with pytest.raises(triton.InferenceServerException):
                    self.client.load_model("m", client_timeout=DEADLINE)
            else:
                self.client.load_model("m", client_timeout=DEADLINE)
        wait_until("the change", 60, condition)

    def versions(self):
        return list(self.client.get_model_metadata(MODEL).versions)

    def infer(self, version):
        values = np.array([(5, 6, 7)], dtype=np.int64)
        tensor = triton.InferInput("input_ids", list(values.shape), "INT64")
        tensor.set_data_from_numpy(values)
        answer = self.client.infer(MODEL, [tensor], model_version=str(version), client_timeout=DEADLINE)
        return answer.as_numpy("last_hidden_state").tobytes()

    def answered(self, version):
        """Requests since the version's last load."""
        return self.client.get_inference_statistics(MODEL, str(version)).model_stats[0].inference_count


@pytest.fixture(params=["poll", "explicit"])
def repository(request, tmp_path):
    opened = Repository(tmp_path, request.param)
    try:
        opened.update(lambda: opened.loads() == {1: 1, 2: 1, 3: 0})
        yield opened
    finally:
        opened.close()


def test_only_what_changed_is_loaded(repository):
    before = repository.infer(1)
    repository.infer(2)

    repository.write(3)
    repository.update(lambda: repository.loads() == {1: 1, 2: 1, 3: 1})
    assert repository.versions() == ["1", "2", "3"]

    repository.write(2, negate=True)
    repository.update(lambda: repository.loads() == {1: 1, 2: 2, 3: 1})
    assert repository.infer(2) != before

    repository.remove(3)
    repository.update(lambda: repository.versions() == ["1", "2"])

    assert repository.loads() == {1: 1, 2: 2, 3: 1}
    assert repository.infer(1) == before
    assert repository.answered(1) == 2, "the same instance has answered from the start"
    assert repository.answered(2) == 1, "another one from its load on"


def test_a_version_that_fails_leaves_the_others_as_they_are(repository):
    repository.infer(1)
    (repository.folder / "3").mkdir()
    (repository.folder / "3" / "config.json").write_text("{", encoding="utf-8")
    repository.update(lambda: repository.failures() == 1, fails=True)
    assert repository.infer(1) == repository.infer(2)

    repository.write(3, negate=True)
    repository.update(lambda: repository.loads() == {1: 1, 2: 1, 3: 1})
    assert repository.infer(3) != repository.infer(1)
    assert repository.answered(1) == 3
