#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the code in one small way after another and looks whether a test notices. README.md explains the tables."""

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import subprocess
import sys
import time

import mutants as table

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST_SHARE = 0.95
CONTROLS = 3  # runs without a mutant for each area, among those with one: they must pass
MIN_SECONDS = 20
SLOWDOWN = 6  # a program that takes so many times as long as without a mutant hangs


@dataclasses.dataclass(frozen=True)
class Outcome:
    killer: str  # the test program that failed; empty: all passed
    how: str


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check that the tables fit the sources")
    parser.add_argument("--only", action="append", default=[], metavar="AREA[.N]", help="these mutants; may repeat")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants that run at the same time")
    parser.add_argument("--build_dir", type=pathlib.Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--list", action="store_true", help="print the mutants")
    return parser.parse_args()


def chosen(mutants, only):
    if not only:
        return mutants
    return [m for m in mutants if any(m.name == o or m.area == o for o in only)]


def source_files():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.splitlines()
    return [file for file in listed if (ROOT / file).is_file()]


def write_if_changed(path, data, mode):
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def copy_sources(mutants, to):
    """The tree with its mutants. What does not change keeps its time, so that little is compiled again."""
    files = source_files()
    texts = table.rewritten_sources(ROOT, files, mutants)
    for file in files:
        data = texts[file].encode() if file in texts else (ROOT / file).read_bytes()
        write_if_changed(to / file, data, (ROOT / file).stat().st_mode)
    known = set(files)
    for path in list(to.rglob("*")):
        file = path.relative_to(to)
        if file.parts[0] != "build" and path.is_file() and str(file) not in known:
            path.unlink()


def build(source, programs):
    subprocess.run(["cmake", "--preset", "release"], cwd=source, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", *sorted(programs)], cwd=source, check=True)


def program_of(test):
    return test.partition(":")[0]


class Runner:
    def __init__(self, source):
        self.source = source
        self.limits = {}  # seconds for each test

    def run(self, test, number, limit):
        """How the test failed; empty when it passed."""
        program, _, pattern = test.partition(":")
        command = [str(self.source / "build/release/tests" / program), "--gtest_brief=1", "--gtest_fail_fast"]
        if pattern:
            command.append(f"--gtest_filter={pattern}")
        environment = dict(os.environ, **{table.VARIABLE: str(number)})
        try:
            done = subprocess.run(command, cwd=self.source, env=environment, timeout=limit, capture_output=True)
        except subprocess.TimeoutExpired:
            return "hangs"
        if done.returncode == 0:
            return ""
        return "fails" if done.returncode == 1 else f"ends with {done.returncode}"

    def calibrate(self, tests):
        for test in sorted(tests):
            start = time.monotonic()
            how = self.run(test, 0, 600)
            if how:
                sys.exit(f"without a mutant {test} {how}")
            seconds = time.monotonic() - start
            self.limits[test] = max(MIN_SECONDS, SLOWDOWN * seconds)
            print(f"  {seconds:6.1f} s  {test}", flush=True)

    def outcome(self, tests, number):
        for test in sorted(tests, key=self.limits.get):
            how = self.run(test, number, self.limits[test])
            if how:
                return Outcome(test, how)
        return Outcome("", "survives")


def describe(mutant):
    return f"{mutant.file}:{mutant.line}: {' '.join(mutant.original.split())}  ->  " \
           f"{' '.join(mutant.replacement.split()) or 'nothing'}"


def run_all(runner, mutants, jobs):
    """{mutant: Outcome}; ends the program when a control fails."""
    work = [(mutant, mutant.tests, mutant.number) for mutant in mutants]
    of_area = {mutant.area: mutant for mutant in mutants}
    for position, area in enumerate(sorted(of_area) * CONTROLS):
        work.insert(min(len(work), position * 10), (None, of_area[area].tests, 0))
    outcomes, failed_controls = {}, []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(runner.outcome, tests, number): mutant for mutant, tests, number in work}
        for future in concurrent.futures.as_completed(futures):
            mutant, outcome = futures[future], future.result()
            if mutant is None:
                if outcome.killer:
                    failed_controls.append(f"{outcome.killer} {outcome.how}")
                continue
            outcomes[mutant] = outcome
            print(f"[{len(outcomes)}/{len(mutants)}] {mutant.name}: {outcome.killer} {outcome.how}", flush=True)
    for failure in failed_controls:
        print(f"without a mutant, beside others: {failure}: it may have killed some falsely")
    return outcomes, not failed_controls


def report(outcomes):
    """Prints survivors and shares; returns the share of all."""
    survivors = [mutant for mutant, outcome in outcomes.items() if not outcome.killer]
    print("\nSurvivors:" if survivors else "\nNo survivors.")
    for mutant in sorted(survivors, key=lambda m: (m.area, m.index)):
        print(f"  {mutant.name}  {describe(mutant)}")
    killed, all_of = collections.Counter(), collections.Counter()
    for mutant, outcome in outcomes.items():
        for key in (mutant.area, "all"):
            all_of[key] += 1
            killed[key] += 1 if outcome.killer else 0
    print()
    for area in [*sorted(all_of.keys() - {"all"}), "all"]:
        print(f"{area:12} {killed[area]:4} of {all_of[area]:4} killed, {100 * killed[area] / all_of[area]:5.1f} %")
    return killed["all"] / all_of["all"]


def use_test_model():
    if "ATTENDANT_TEST_MODEL" not in os.environ:
        said = subprocess.run([ROOT / "deploy" / "fetch-model.sh"], check=True, capture_output=True, text=True).stdout
        os.environ["ATTENDANT_TEST_MODEL"] = said.splitlines()[-1]


def main():
    arguments = parse_arguments()
    try:
        all_mutants, _ = table.read_mutants(ROOT)
    except table.TableError as error:
        sys.exit(f"{error}")
    if arguments.check:
        print(f"{len(all_mutants)} mutants fit the sources")
        return 0
    mutants = chosen(all_mutants, arguments.only)
    if arguments.list or not mutants:
        for mutant in mutants:
            print(f"{mutant.name}  {describe(mutant)}")
        return 0 if mutants else 1
    source = arguments.build_dir / "source"
    copy_sources(all_mutants, source)
    tests = {test for mutant in mutants for test in mutant.tests}
    build(source, {program_of(test) for test in tests})
    use_test_model()
    runner = Runner(source)
    print("Without a mutant:")
    runner.calibrate(tests)
    outcomes, sound = run_all(runner, mutants, arguments.jobs)
    return 0 if report(outcomes) >= LEAST_SHARE and sound else 1


if __name__ == "__main__":
    sys.exit(main())
