#!/usr/bin/env python3
"""What `make install` puts in place works without the source tree: program, library, header, pages.

The build folder is installed into a folder of its own; everything below runs from an empty folder
with a PATH that has only the installed program.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import support
from support import tmux

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ANYTIME"]).resolve().parent
BOUND = 300
VERBS = re.findall(r'^    \{"([a-z]+)", ', (ROOT / "src/cli/verbs/verbs.c").read_text(), re.M)


def call(*command, **options):
    """A finished process with its output as text; it must exit with 0."""
    done = subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=BOUND, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if support.is_sanitized():
            raise unittest.SkipTest("programs that use the library would need the sanitizers too")
        cls.holder = tempfile.TemporaryDirectory(prefix="anytime-install-")
        cls.addClassCleanup(cls.holder.cleanup)
        cls.folder = pathlib.Path(cls.holder.name)
        cls.prefix = cls.folder / "prefix"
        call("cmake", "--install", BUILD, "--strip", "--prefix", cls.prefix)
        cls.manifest = (BUILD / "install_manifest.txt").read_text()
        cls.library = next(cls.prefix.glob("lib/**/libanytime.so")).parent
        cls.environment = {"PATH": f"{cls.prefix}/bin:/usr/bin:/bin", "HOME": cls.holder.name,
                           "LD_LIBRARY_PATH": str(cls.library), "LC_ALL": "C.UTF-8",
                           "PKG_CONFIG_PATH": f"{cls.library}/pkgconfig", "TMPDIR": cls.holder.name}

    def setUp(self):
        self.empty = pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def run_here(self, *command, **more):
        return call(*command, cwd=self.empty, env={**self.environment, **more})

    def need(self, program):
        if not shutil.which(program, path="/usr/bin:/bin"):
            self.skipTest(f"{program} is not installed")

    def test_program_trains(self):
        self.run_here("anytime", "train", "--data", "synthetic:500,10,3", "--model", "mlp:8",
                      "--workers", "2", "--steps", "5", "--quiet", "--run", "run")
        self.run_here("anytime", "report", "run", "--plots", "none")
        self.assertTrue((self.empty / "run" / "result.json").is_file())

    def test_no_path_of_the_source_tree_is_left(self):
        for name in ("bin/anytime", "lib/libanytime.so"):
            path = next(self.prefix.glob(name), None) or self.library / "libanytime.so"
            for folder in ("src", "build", "models"):
                self.assertNotIn(f"{ROOT}/{folder}/".encode(), path.read_bytes(), path)

    def test_version_names_commit_and_engines(self):
        out = self.run_here("anytime", "--version").stdout
        self.assertRegex(out, r"^anytime \d+\.\d+\.\d+(, commit [0-9a-f]{7,}\+?)?\n"
                         r"engines: .*oneDNN")

    def test_pkg_config_builds_an_example(self):
        self.need("pkg-config")
        flags = self.run_here("pkg-config", "--cflags", "--libs", "anytime").stdout.split()
        source = next(self.prefix.glob("share/doc/**/examples/own_model.c"))
        self.run_here("cc", "-o", "own", source, *flags, "-lm")
        self.run_here(self.empty / "own")

    def test_find_package_builds_an_example(self):
        source = next(self.prefix.glob("share/doc/**/examples/own_model.c"))
        (self.empty / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(own LANGUAGES C)\n"
            "find_package(anytime 0.2 REQUIRED)\n"
            f"add_executable(own {source})\ntarget_link_libraries(own anytime::anytime m)\n")
        self.run_here("cmake", "-B", "out", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.run_here("cmake", "--build", "out")
        self.run_here(self.empty / "out" / "own")

    def test_static_library_builds_an_example(self):
        self.need("pkg-config")
        flags = self.run_here("pkg-config", "--static", "--libs", "anytime").stdout.split()
        source = next(self.prefix.glob("share/doc/**/examples/own_model.c"))
        flags = [str(self.library / "libanytime.a") if flag == "-lanytime" else flag
                 for flag in flags]
        self.run_here("cc", "-o", "own", f"-I{self.prefix}/include", source, *flags)
        self.run_here(self.empty / "own", LD_LIBRARY_PATH="")

    def test_python_finds_package_and_library(self):
        found = self.run_here("/usr/bin/python3", "-c",
                              "import anytime; print(anytime.__file__, anytime.version())",
                              PYTHONPATH=f"{self.prefix}/lib/python3/dist-packages",
                              LD_LIBRARY_PATH="").stdout
        self.assertIn(str(self.prefix), found)

    def test_manual_pages_are_well_formed(self):
        self.need("man")
        pages = sorted(self.prefix.glob("share/man/man*/*"))
        names = {page.name for page in pages}
        self.assertEqual(names, {"anytime.1", "anytime.h.3",
                                 *(f"anytime-{verb}.1" for verb in VERBS)})
        for page in pages:
            shown = self.run_here("man", "--warnings", "-P", "cat", "-l", page, MANWIDTH="100")
            self.assertEqual(shown.stderr, "", page)
            self.assertIn("NAME", shown.stdout)
            self.assertGreater(len(shown.stdout.splitlines()), 10, page)

    def completed(self, *words):
        """What bash offers for the last word."""
        script = (self.prefix / "share/bash-completion/completions/anytime")
        text = (f'. "{script}"; COMP_WORDS=("$@"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
                '_anytime; printf "%s\\n" "${COMPREPLY[@]}"')
        return self.run_here("bash", "-c", text, "bash", *words).stdout.split()

    def test_bash_completes_verbs_options_and_values(self):
        self.assertEqual(set(self.completed("anytime", "")), {*VERBS, "--help", "--version"})
        self.assertEqual(self.completed("anytime", "train", "--strat"), ["--strategy"])
        self.assertIn("amb", self.completed("anytime", "train", "--strategy", ""))
        self.assertEqual(self.completed("anytime", "train", "--model", "resnet18-2"),
                         ["resnet18-224"])
        self.assertEqual(self.completed("anytime", "train", "--gather", "quo"), ["quorum"])
        self.assertIn("fashion-mnist", self.completed("anytime", "data", "get", ""))
        self.assertEqual(self.completed("anytime", "train", "--shard", "by"), ["by-class"])
        self.assertIn("fmb", self.completed("anytime", "compare", ""))
        for name, begin, whole in (("optimizer", "rms", "rmsprop"), ("straggler", "nia", "niagara"),
                                     ("lr-schedule", "cos", "cosine")):
            self.assertEqual(self.completed("anytime", "train", f"--{name}", begin), [whole])
        self.assertEqual(self.completed("anytime", "train", "--no-resp"), ["--no-respawn"])

    def test_a_real_bash_completes_values(self):
        """As a user sees it: bash-completion finds the installed file, and Tab writes the rest."""
        self.need("tmux")
        loader = pathlib.Path("/usr/share/bash-completion/bash_completion")
        if not loader.exists():
            self.skipTest("bash-completion is not installed")
        terminal = tmux.Terminal(self, "bash --norc --noprofile", cwd=self.empty, env={
            **self.environment, "XDG_DATA_DIRS": f"{self.prefix}/share:/usr/share", "PS1": "$ ",
            "HISTFILE": "/dev/null"})  # else written while the folder is removed
        terminal.type(f". {loader}", "Enter")
        for begin, shown in (("anytime train --strategy amb-", "--strategy amb-gossip"),
                             ("anytime train --model resnet18-2", "--model resnet18-224"),
                             ("anytime train --data fash", "--data fashion-mnist"),
                             ("anytime data get cif", "data get cifar10"),
                             ("anytime compa", "anytime compare")):
            with self.subTest(begin=begin):
                terminal.type(begin, "Tab")
                terminal.wait_shown(shown)
                terminal.type("C-u")  # C-c would discard what is typed next

    def test_zsh_script_is_valid(self):
        self.need("zsh")
        self.run_here("zsh", "-n", self.prefix / "share/zsh/vendor-completions/_anytime")

    def test_data_of_packages_is_found_below_xdg_data_dirs(self):
        folder = self.empty / "share" / "datasets" / "fashion-mnist"
        folder.mkdir(parents=True)
        (folder / "train-images-idx3-ubyte").touch()
        said = self.run_here("anytime", "doctor", "--json",
                             XDG_DATA_DIRS=f"/nowhere:{self.empty}/share/").stdout
        rows = {row["what"]: row for row in json.loads(said)["findings"]}
        self.assertEqual(rows["data sets"]["facts"]["fashion-mnist"], str(folder))

    def test_uninstall_leaves_nothing(self):
        other = self.folder / "other"
        call("cmake", "--install", BUILD, "--prefix", other)
        manifest = self.empty / "manifest.txt"
        shutil.move(BUILD / "install_manifest.txt", manifest)
        call(ROOT / "tools/uninstall.sh", manifest)
        self.assertFalse(other.exists())


if __name__ == "__main__":
    support.main()
