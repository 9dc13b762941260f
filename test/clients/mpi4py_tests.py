"""One rank of a run of mpi4py's own tests: mpi4py_tests.py TESTS RESULTS [--device] [OPTION...]

TESTS is mpi4py's folder of tests, OPTION... are those of its main.py. RESULTS.RANK gets a line a test,
"passed ID" or what else became of it, after the line "started ID": of a process that dies, the last one says
in which test. --device: the arrays of the tests are in device memory.
"""

import os
import sys
import unittest


class Recorder(unittest.TestResult):
    def __init__(self, results):
        super().__init__()
        self.results = results

    def note(self, what, test, why=""):
        self.results.write(f"{what} {test.id()}\n{why}")
        self.results.flush()

    def startTest(self, test):
        super().startTest(test)
        self.partly = False
        self.note("started", test)

    def addSuccess(self, test):
        super().addSuccess(test)
        if not self.partly:
            self.note("passed", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note("skipped", test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note("failed", test, self.why(error, test))

    def addError(self, test, error):
        super().addError(test, error)
        self.note("failed", test, self.why(error, test))

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.note("skipped", test)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.partly = True
            self.note("failed", test, self.why(error, test))

    def why(self, error, test):
        return "".join(f"  | {line}\n" for line in self._exc_info_to_string(error, test).splitlines())


class Runner:
    def __init__(self, results):
        self.results = results

    def run(self, tests):
        result = Recorder(self.results)
        result.startTestRun()
        tests(result)
        result.stopTestRun()
        return result


def main(tests, results, *options):
    options = list(options)
    device = "--device" in options
    if device:
        options.remove("--device")
    sys.path.insert(0, tests)
    sys.dont_write_bytecode = True
    import main as mpi4py_main

    class Program(mpi4py_main.TestProgram):
        def createTests(self, from_discovery=False, Loader=None):
            mpi4py_main.setup_modules(self)
            if device:
                import device_array

                device_array.register()
            super().createTests(from_discovery, Loader)

    rank = os.environ["OMPI_COMM_WORLD_RANK"]
    with open(f"{results}.{rank}", "w", encoding="utf-8") as file:
        # No line of its own on the terminal but for what goes wrong.
        Program(module=None, argv=["mpi4py", "-q", "--no-builddir", *options],
                testRunner=Runner(file))


if __name__ == "__main__":
    main(*sys.argv[1:])
