# SPDX-License-Identifier: Apache-2.0
"""bundle.sh: what it packs runs without the build folder and without an environment."""

import pathlib
import subprocess
import tempfile
import unittest

BUNDLE = pathlib.Path(__file__).parent / "bundle.sh"


class BundleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "bundle.tar.gz"

    def test_a_program_runs_from_where_it_is_unpacked(self):
        subprocess.run([BUNDLE, self.file, "engine_bench"], check=True)
        subprocess.run(["tar", "xzf", self.file, "-C", self.folder], check=True)
        self.assertTrue(list((self.folder / "bundle/lib").glob("libdnnl.so*")))
        command = [self.folder / "bundle/bin/engine_bench", "--commands", "--shape=bundle/shapes/minilm", "--seconds=0"]
        ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=self.folder,
                               input="rate 16\n", env={"PATH": "/usr/bin:/bin"})
        self.assertIn("tokens_per_second", ended.stdout)
        loaded = subprocess.run(["ldd", self.folder / "bundle/libexec/engine_bench"], check=True, capture_output=True,
                                text=True, env={"LD_LIBRARY_PATH": str(self.folder / "bundle/lib")}).stdout
        self.assertIn(f"{self.folder}/bundle/lib/libdnnl.so", loaded)

    def test_a_program_that_is_not_built_is_named(self):
        ended = subprocess.run([BUNDLE, self.file, "no_bench"], capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("no no_bench in", ended.stderr)
        self.assertFalse(self.file.exists())


if __name__ == "__main__":
    unittest.main()
