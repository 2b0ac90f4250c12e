"""The sandbox image as it is shipped: what is in it, what is not, and what its seccomp profile refuses.

Needs an engine and the image of `make images`. Each program runs in a container of its own, with the flags of a
call.
"""

import errno
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from types import ModuleType

import pytest

from proofbox.service.app.settings import Settings

pytestmark = pytest.mark.docker

IMAGES = Path(__file__).resolve().parents[3] / "sandbox_images"
PROBES = Path(__file__).resolve().parent / "probes"
IMAGE = Settings().sandbox_image
SECCOMP = IMAGES / "seccomp" / "sandbox.json"
HARDENED = (
    "--network=none",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    f"--security-opt=seccomp={SECCOMP}",
    "--pids-limit=128",
    "--memory=1g",
    "--memory-swap=1g",
    "--shm-size=32m",
    "--tmpfs=/tmp:rw,nosuid,nodev,size=128m,mode=1777",
    "--tmpfs=/out:rw,nosuid,nodev,size=64m,uid=10001,gid=10001",
)
READ_A_PDF = """
python3 -c 'import weasyprint; weasyprint.HTML(string="<p>one line").write_pdf("a.pdf")'
pdftotext a.pdf - | head -n 1; pdfinfo a.pdf | grep -c 'Pages: *1$'; pdftoppm -png a.pdf p; ls p*
"""
# The runner prepares HOME in the same way before it starts a program.
PREPARED_PYTHON = 'cp -rT /opt/proofbox/skel "$HOME" && cat >/tmp/probe.py && exec python3 /tmp/probe.py'


@pytest.fixture(scope="session")
def engine() -> dict[str, str]:
    host = subprocess.run([IMAGES / "engine.sh", "--print-host"], capture_output=True, text=True, check=True)
    return os.environ | {"DOCKER_HOST": host.stdout.strip()}


class Sandbox:
    """Runs one command in one new container and removes it whatever happens."""

    def __init__(self, engine: dict[str, str]) -> None:
        self.engine = engine

    def run(self, *command: str, stdin: str = "", flags: tuple[str, ...] = HARDENED) -> subprocess.CompletedProcess:
        name = f"proofbox-image-test-{uuid.uuid4().hex}"
        start = ["docker", "run", "--rm", "-i", "--name", name, *flags, "--entrypoint", command[0], IMAGE]
        try:
            return subprocess.run(
                [*start, *command[1:]],
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                env=self.engine,
                timeout=120,
            )
        finally:
            subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False, env=self.engine)

    def probe(self, name: str) -> object:
        """The JSON that a program of probes/ prints in the sandbox; it has to end well and without a warning."""
        done = self.run("bash", "-c", PREPARED_PYTHON, stdin=(PROBES / name).read_text(encoding="utf-8"))
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def inspect(self, template: str) -> object:
        told = subprocess.run(
            ["docker", "image", "inspect", "--format", template, IMAGE],
            capture_output=True,
            text=True,
            check=True,
            env=self.engine,
        )
        return json.loads(told.stdout)


@pytest.fixture(scope="session")
def sandbox(engine: dict[str, str]) -> Sandbox:
    return Sandbox(engine)


@pytest.fixture(scope="session")
def pinned() -> dict[str, str]:
    text = (IMAGES / "requirements.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


@pytest.fixture(scope="session")
def sbom(sandbox: Sandbox) -> dict:
    shown = sandbox.run("cat", "/opt/proofbox/sbom.cdx.json")
    assert shown.returncode == 0
    return json.loads(shown.stdout)


@pytest.fixture(scope="session")
def families() -> ModuleType:
    sys.path.append(str(IMAGES / "seccomp"))
    spec = importlib.util.spec_from_file_location("seccomp_families", IMAGES / "seccomp" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# ---- what the image is


def test_the_image_is_built_from_the_files_of_this_checkout(sandbox, engine):
    inputs = subprocess.run(
        [IMAGES / "build.sh", "--print-inputs"], capture_output=True, text=True, check=True, env=engine
    )
    assert sandbox.inspect('{{json (index .Config.Labels "proofbox.inputs")}}') == inputs.stdout.strip()


def test_the_image_starts_the_runner_as_an_unprivileged_user_in_the_output_folder(sandbox):
    config = sandbox.inspect("{{json .Config}}")
    assert {key: config.get(key) for key in ("Entrypoint", "Cmd", "User", "WorkingDir", "Env", "Volumes")} == {
        "Entrypoint": ["/opt/proofbox/venv/bin/python3", "-I", "-S", "/opt/proofbox/runner"],
        "Cmd": None,
        "User": "10001:10001",
        "WorkingDir": "/out",
        "Env": ["PATH=/opt/proofbox/venv/bin:/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"],
        "Volumes": None,
    }


def test_the_image_is_at_most_1300_megabytes(sandbox):
    assert sandbox.inspect("{{.Size}}") <= 1_300_000_000


def test_the_history_of_the_image_names_no_address_and_no_build_argument(engine):
    history = subprocess.run(
        ["docker", "history", "--no-trunc", "--format", "{{.CreatedBy}}", IMAGE],
        capture_output=True,
        text=True,
        check=True,
        env=engine,
    )
    assert re.findall(r"https?://|pip|index|proxy|\|\d+ ", history.stdout, re.IGNORECASE) == []


def test_every_file_is_readable_by_the_user_of_the_sandbox(sandbox):
    unreadable = "find /opt /usr /etc/fonts /var/cache/fontconfig -not -type l -not -readable"
    found = sandbox.run("bash", "-c", unreadable)
    assert (found.stdout, found.stderr, found.returncode) == ("", "", 0)


def test_no_file_is_setuid_or_setgid(sandbox):
    found = sandbox.run("find", "/", "-xdev", "-perm", "/6000", flags=("--network=none", "--user=0:0"))
    assert (found.stdout, found.stderr, found.returncode) == ("", "", 0)


def test_nothing_of_the_build_is_left_no_installer_no_compiler_no_package_source(sandbox):
    # The list of authorities in certifi stays: requests looks for it before it notices that there is no network.
    tools = "pip pip3 ensurepip apt apt-get npm npx corepack cc gcc g++ clang ld strip make wget uv conda"
    files = (
        r"find / -xdev \( -name '*.crt' -o -name '*.pem' -not -path '*/certifi/cacert.pem'"
        r" -o -name 'pip.conf' -o -name 'sources.list*'"
        r" -o -name 'ensurepip' -o -name 'pip-*' -o -path /build -o -path /etc/apt"
        r" -o -path /var/lib/apt -o -path /root/.cache \)"
    )
    found = sandbox.run("bash", "-c", f"which {tools}; {files}", flags=("--network=none", "--user=0:0"))
    assert (found.stdout, found.stderr) == ("", "")


def test_a_process_in_the_sandbox_has_no_root_no_capability_and_a_read_only_image(sandbox):
    assert sandbox.probe("confinement.py") == {
        "uid_gid_groups": [10001, 10001, [10001]],
        "user": "sandbox",
        "home": "/tmp/home",
        "capabilities": ["0000000000000000"] * 5,
        "no_new_privileges": "1",
        "seccomp": "2",
        "write_to": {
            "/opt/proofbox/x": "EROFS",
            "/usr/x": "EROFS",
            "/job/x": "EROFS",
            "/out/x": None,
            "/tmp/x": None,
        },
    }


# ---- what programs find in it


@pytest.mark.slow
def test_every_library_imports_in_the_pinned_version_without_a_warning(sandbox, pinned):
    assert sandbox.probe("libraries.py") == pinned


def test_every_library_in_c_still_loads_after_what_was_taken_from_it(sandbox):
    assert sandbox.probe("extensions.py") == {"libraries": True, "failed": []}


@pytest.mark.slow
def test_each_library_for_data_does_a_small_job(sandbox):
    assert sandbox.probe("data_libraries.py") == {
        "root": 1.4142,
        "t_test": True,
        "classification": True,
        "regression": [1.0, 3.0],
        "algebra": "x*sin(x) + cos(x)",
        "shortest_path": ["a", "b", "c"],
        "heat_map": True,
        "chart_page": [True, True],
        "columns": [4, 2, 2.0],
        "progress": True,
        "table": "| name   |   n |\n|--------|-----|\n| a      |   1 |",
    }


def test_each_library_for_documents_does_a_small_job(sandbox):
    assert sandbox.probe("document_libraries.py") == {
        "pdf": ["Total: 42", [["a", "b"], ["1", "2"]]],
        "docx": "Dear Ada",
        "html": ["/x"],
        "template": "0;1;2;",
        "requests": "ConnectionError",
        "xls": 42.0,
    }


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("""echo '{"a": [1, 2]}' | jq -c '.a | map(. * 2)'""", "[2,4]\n"),
        ("echo x >a.txt; zip -q a.zip a.txt; rm a.txt; unzip -q a.zip; cat a.txt", "x\n"),
        ("printf '%%PDF-1.7\\n' >a; file --brief --mime-type a", "application/pdf\n"),
        ("mkdir -p d/e; touch d/e/f; tree --noreport d", "d\n└── e\n    └── f\n"),
        ("echo 1 | less", "1\n"),
        ("echo a >f; printf '%s\\n' '--- f' '+++ f' '@@ -1 +1 @@' -a +b | patch -s; cat f", "b\n"),
        ("echo 'scale=3; 22 / 7' | bc", "3.142\n"),
        ("sqlite3 a.db 'create table t(n); insert into t values (1), (2); select sum(n) from t'", "3\n"),
        ("printf AB | xxd -p", "4142\n"),
        (READ_A_PDF, "one line\n1\np-1.png\n"),
        ("""node -e 'console.log([3, 1, 2].toSorted().join())'""", "1,2,3\n"),
    ],
    ids=lambda each: each[:40],
)
def test_each_command_does_a_small_job(sandbox, script, printed):
    done = sandbox.run("bash", "-c", f"cd /out; {script}")
    assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)


def test_the_locale_of_american_english_is_there_for_those_who_set_it(sandbox):
    program = (
        "import locale\n"
        "print(locale.setlocale(locale.LC_ALL), locale.setlocale(locale.LC_ALL, 'en_US.UTF-8'))\n"
        "print(locale.currency(1234567.5, grouping=True), f'{1234567:n}')\n"
    )
    done = sandbox.run("sh", "-c", PREPARED_PYTHON, stdin=program)
    lines = done.stdout.splitlines()
    assert (lines[0].rpartition(" ")[2], lines[1:], done.stderr) == ("en_US.UTF-8", ["$1,234,567.50 1,234,567"], "")
    assert "C.UTF-8" in lines[0]


@pytest.mark.slow
def test_libraries_leave_no_thread_that_a_fork_would_lose(sandbox):
    """Python warns of that, and no zygote could be made: pyarrow's jemalloc would start one."""
    program = (
        "import os, pandas, scipy.stats, sklearn.ensemble\n"
        "if os.fork() == 0:\n    os._exit(0)\n"
        "os.wait()\nprint(len(os.listdir('/proc/self/task')))\n"
    )
    done = sandbox.run("sh", "-c", PREPARED_PYTHON, stdin=program)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_what_programs_use_of_the_system_works_under_the_seccomp_profile(sandbox):
    assert sandbox.probe("everyday.py") == {
        "fork": [0, 1, 4, 9],
        "spawn": [0, 1, 4, 9],
        "forkserver": [0, 1, 4, 9],
        "threads": [0, 1, 4, 9],
        "process_executor": [0, 1, 4, 9],
        "asyncio_subprocess": "hello\n",
        "shell": "12\n",
        "shared_memory": 7,
        "matrix": 500.0,
        "sqlite": 3,
        "loopback": "pong",
        "unix_socket": "pong",
        "copied": 3_000_000,
        "sent_by_asyncio": 3_000_000,
        "sent_by_a_socket": 3_000_000,
        "served_over_http": 3_000_000,
        "refused_options": [],
        "named_pipe": "through",
        "copy_with_attributes": [0o640, 1_600_000_000],
        "lowered_limit": [64, 64],
        "time_zone": "CEST",
        "nice": 5,
    }


def test_tables_survive_excel_and_parquet(sandbox):
    assert sandbox.probe("tables.py") == {"xlsx": [[1, "é"], [2, "漢"]], "parquet": [[1, "é"], [2, "漢"]]}


def test_a_pdf_in_seven_scripts_embeds_every_font_and_keeps_its_text(sandbox):
    assert sandbox.probe("pdf.py") == {
        "not_embedded": [],
        "fonts": {
            "Latin": ["Noto-Sans"],
            "Chinese": ["Droid-Sans-Fallback"],
            "Japanese": ["Droid-Sans-Fallback"],
            "Korean": ["NanumGothic"],
            "Arabic": ["DejaVu-Sans"],
            "Hindi": ["Noto-Sans-Devanagari"],
            "emoji": ["Noto-Color-Emoji"],
        },
        "texts_lost": [],
    }


def test_office_fonts_are_replaced_by_those_of_the_same_metrics(sandbox):
    families = ("Arial", "Times New Roman", "Courier New", "Calibri", "Cambria")
    found = sandbox.run("bash", "-c", 'for f; do fc-match -f "%{family}\\n" "$f"; done', "-", *families)
    assert found.stdout.split("\n")[:-1] == [
        "Liberation Sans",
        "Liberation Serif",
        "Liberation Mono",
        "Carlito",
        "Caladea",
    ]


def test_emoji_are_scaled_to_the_size_of_the_text(sandbox):
    assert sandbox.run("ls", "/etc/fonts/conf.d/10-scale-bitmap-fonts.conf").returncode == 0


def test_matplotlib_draws_labels_in_any_script_from_the_font_list_of_the_image(sandbox):
    assert sandbox.probe("chart.py") == {
        "font_list_unchanged": True,
        "log": [],
        "pixels_drawn": True,
        "backend": "agg",
        "not_listed": [],
        "not_found": [],
    }


def test_fontconfig_uses_the_cache_of_the_image(sandbox):
    # It writes a cache of its own as soon as the one of the system does not fit the folders.
    script = (
        'mkdir -p "$HOME/.cache"; fc-list >/tmp/fonts; find "$HOME" -type f; [ "$(wc -l </tmp/fonts)" -gt 250 ]'
    )
    listed = sandbox.run("bash", "-c", script)
    assert (listed.stdout, listed.stderr, listed.returncode) == ("", "", 0)


# ---- the bill of materials


def test_the_bill_of_materials_has_the_required_fields_of_cyclonedx_1_5(sbom):
    assert (sbom["bomFormat"], sbom["specVersion"], sbom["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", sbom["serialNumber"])
    references = [component["bom-ref"] for component in sbom["components"]]
    assert len(references) == len(set(references))
    for component in sbom["components"]:
        assert component["type"] == "library"
        assert component["name"]
        assert component["version"]
        assert re.fullmatch(
            r"pkg:(deb/debian|pypi)/[a-z0-9.%B-]+@[^@?#/]+(\?arch=\w+&distro=debian-13)?", component["purl"]
        )
        forms = {key for licence in component.get("licenses", []) for key in licence}
        assert forms in (set(), {"expression"}, {"license"})


def test_the_bill_of_materials_lists_exactly_the_pinned_python_packages(sbom, pinned):
    listed = {part["name"]: part["version"] for part in sbom["components"] if part["purl"].startswith("pkg:pypi/")}
    assert listed == pinned


def test_the_bill_of_materials_lists_exactly_the_debian_packages_that_dpkg_knows(sbom, sandbox):
    known = sandbox.run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n")
    installed = {
        (package, version)
        for status, package, version in (line.split() for line in known.stdout.splitlines())
        if status == "installed"
    }
    parts = [part for part in sbom["components"] if part["purl"].startswith("pkg:deb/")]
    assert {(part["name"], part["version"]) for part in parts} == installed


def test_nearly_every_component_of_the_bill_of_materials_has_a_licence(sbom):
    without = [part["name"] for part in sbom["components"] if not part.get("licenses")]
    assert len(without) <= len(sbom["components"]) // 5


# ---- the seccomp profile


def test_the_seccomp_profile_is_in_step_with_its_families(families):
    assert json.loads(SECCOMP.read_text(encoding="utf-8")) == families.profile()
    checked = subprocess.run([sys.executable, IMAGES / "seccomp" / "generate.py", "--check"], check=False)
    assert checked.returncode == 0


def test_the_check_of_the_seccomp_profile_fails_on_drift(tmp_path):
    shutil.copytree(IMAGES / "seccomp", tmp_path, dirs_exist_ok=True)
    (tmp_path / "sandbox.json").write_text(
        SECCOMP.read_text(encoding="utf-8").replace('"mkdir",', '"mkdir", "mount",'), encoding="utf-8"
    )
    checked = subprocess.run(
        [sys.executable, tmp_path / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (
        1,
        "sandbox.json does not match its families: run generate.py and commit the result\n",
    )


def test_every_probed_system_call_is_refused_as_its_family_says(sandbox, families):
    refusals = sandbox.probe("refusals.py")
    expected = {name: "EPERM" for family in families.REFUSED for name in family.names}
    expected |= {name: errno.errorcode[family.errno] for family in families.UNAVAILABLE for name in family.names}
    assert refusals == {name: expected[name] for name in refusals}
    assert len(refusals) >= 60


def test_only_local_and_internet_sockets_can_be_opened(sandbox):
    assert sandbox.probe("sockets.py") == {
        "AF_UNIX": "opened",
        "AF_INET": "opened",
        "AF_INET6": "opened",
        "AF_NETLINK": "EPERM",
        "AF_PACKET": "EPERM",
        "AF_ALG": "EPERM",
        "AF_VSOCK": "EPERM",
        "AF_CAN": "EPERM",
        "AF_TIPC": "EPERM",
        "AF_BLUETOOTH": "EPERM",
        "AF_QIPCRTR": "EPERM",
        "AF_XDP": "EPERM",
        "AF_TIPC pair": "EPERM",
    }


def test_arguments_that_reach_beyond_the_caller_are_refused(sandbox):
    assert sandbox.probe("arguments.py") == {
        "limits of process 1": "EPERM",
        "own limits": "allowed",
        "priority of process 1": "EPERM",
        "scheduler of process 1": "EPERM",
        "clone into a user namespace": "EPERM",
        "clone into a network namespace": "EPERM",
        "character device": "EPERM",
        "whiteout": "EPERM",
        "block device": "EPERM",
        "named pipe": "allowed",
        "personality without address randomisation": "EPERM",
        "32-bit personality": "EPERM",
        "urgent data": "EPERM",
        "ask for urgent data": "EPERM",
        "send without a copy": "EPERM",
        "send without waiting": "allowed",
        "encapsulation": "EPERM",
        "upper protocol": "EPERM",
        "signatures": "EPERM",
        "filter of a socket": "EPERM",
        "filter of a group": "EPERM",
        "zero copy": "EPERM",
        "no delay": "allowed",
        "filter of calls": "EPERM",
        "name of a thread": "allowed",
        "a file into a socket": "EINVAL",
        "ask for the personality": "allowed",
    }


def test_a_call_through_the_32_bit_table_kills_the_caller(sandbox):
    # Only x86_64 has such a table at hand; the probe says -31 (SIGSYS) or that there is none.
    assert sandbox.probe("foreign_table.py") in ({"x86_64": -31}, {"aarch64": "no 32-bit table"})


def test_what_is_kept_of_matplotlib_s_search_for_fonts_depends_on_all_that_the_search_does(sandbox):
    """Its argument and settings, as this version reads them."""
    program = (
        "import inspect, json, re, sys\n"
        "sys.path.insert(0, '/opt/proofbox/runner')\n"
        "from zygote import font_lookups\nfrom matplotlib.font_manager import FontManager\n"
        "source = inspect.getsource(FontManager.findfont)\n"
        "listed = re.findall(r'\"font[.](.+?)\"', source)\n"
        "parameters = list(inspect.signature(FontManager._find_fonts_by_props).parameters)[:2]\n"
        "settings = [name.removeprefix('font.') for name in font_lookups._SETTINGS]\n"
        "is_covered = len(listed) == 5 and set(listed) <= set(settings)\n"
        "print(json.dumps([is_covered, source.count('rcParams['), parameters]))\n"
    )
    done = sandbox.run("sh", "-c", PREPARED_PYTHON, stdin=program)
    assert json.loads(done.stdout or "null") == [True, 1, ["self", "prop"]], done.stderr
