"""Programs that are forked into their sandbox: what they see, hold and can do is what launched ones do.

Every probe runs twice, in a service that imports once and in one that does not; the answers have to be equal.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import engine_sides
import pytest
from engine_sides import OciSide, first_and_slow, is_of_sandboxes, kinds_held_by, side_of
from service_process import ServiceProcess, eventually, request, serving, verdicts

from proofbox.service.app.settings import Settings
from tests.support.kernel_filter import ALLOWED, verdict

pytestmark = pytest.mark.docker

# The import makes the service choose the flavour; it stands after the probe, so that this sees what was there.
FLAVOURS = {
    "bare": ("pass", "json"),
    "data": ("import numpy", "numpy"),
    "documents": ("import weasyprint", "weasyprint"),
}


# Into containers of gVisor nothing can be forked.
FORKING = [
    name
    for name in engine_sides.tested()
    if name != "docker" or "runsc" not in os.environ.get("PROOFBOX_RUNTIME", "")
]


@pytest.fixture(scope="module", params=first_and_slow(FORKING))
def engine_name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def forking(engine_name, tmp_path_factory) -> Iterator[ServiceProcess]:
    with running(engine_name, tmp_path_factory, "on") as service:
        for module in ("numpy", "weasyprint"):
            tells = f"open('out.txt', 'w').write(str({module!r} in vars(os.sys)['modules']))"
            code = f"import os\n{tells}\nimport {module}"
            assert eventually(lambda code=code: said(service, code), lambda told: told == "True") == "True"
        yield service


@pytest.fixture(scope="module")
def launching(engine_name, tmp_path_factory) -> Iterator[ServiceProcess]:
    with running(engine_name, tmp_path_factory, "off") as service:
        yield service


@contextlib.contextmanager
def running(engine: str, tmp_path_factory, import_once: str) -> Iterator[ServiceProcess]:
    side = side_of(engine)
    folder = tmp_path_factory.mktemp(f"once-{import_once}")
    # Of one container that waits: others would import while they wait, and show it in their command line.
    settings = {"engine": engine, "import_once": import_once, "pool_size": 1, "pool_max": 1}
    with serving(folder / "data", side, **settings) as service:
        yield service
    side.close()


def said(service: ServiceProcess, code: str) -> str:
    answer = service.call(code)
    return next(
        block["text"] for block in answer["blocks"] if block["path"].endswith("out.txt") and "text" in block
    )


def both(forking: ServiceProcess, launching: ServiceProcess, probe: str, flavour: str = "bare"):
    last, module = FLAVOURS[flavour]
    code = f"import os, sys\n{probe}\ntold['preloaded'] = {module!r} in vars(sys)['modules']\n{last}"
    forked, launched = forking.probe(code), launching.probe(code)
    assert (forked.pop("preloaded"), launched.pop("preloaded")) == (True, flavour == "bare")
    return forked, launched


IDENTITY = """
rows = dict(line.split(':', 1) for line in open('/proc/self/status') if ':' in line)
for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'Seccomp_filters', 'Uid',
             'Gid', 'Groups', 'Umask', 'Name', 'TracerPid', 'PPid', 'Threads', 'SigBlk', 'SigIgn', 'SigCgt',
             'Cpus_allowed', 'Mems_allowed', 'CoreDumping', 'Speculation_Store_Bypass'):
    told[name] = rows.get(name, '').split()
# Of the C library, for its own signal 33, as soon as there was a thread.
told['SigCgt'] = int(told['SigCgt'][0], 16) & ~(1 << 32)
told['leads'] = (os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid(), os.getppid())
told['nice'] = (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0)))
told['oom'] = open('/proc/self/oom_score_adj').read()
import resource
told['limits'] = {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith('RLIMIT')}
told['owner'] = (os.stat('/proc/self/mem').st_uid, os.stat('/proc/self/environ').st_uid)
"""
PLACES = """
told['fds'] = {fd: os.readlink(f'/proc/self/fd/{fd}').partition(':')[0] for fd in os.listdir('/proc/self/fd')
               if os.path.lexists(f'/proc/self/fd/{fd}')}
told['groups'] = sorted(line.split(':', 1)[1].partition('/')[0] for line in open('/proc/self/cgroup'))
told['same group'] = open('/proc/self/cgroup').read() == open('/proc/1/cgroup').read()
mounts = [line.split() for line in open('/proc/self/mountinfo')]
told['mounts'] = sorted((f[4], f[5], f[3] if f[3] == '/' else '', f[f.index('-') + 1]) for f in mounts
                        if not f[4].startswith('/sys/fs/cgroup'))
told['exe'] = [os.readlink(f'/proc/self/{name}') for name in ('exe', 'cwd', 'root')]
paths = {line.split(None, 5)[5].strip() for line in open('/proc/self/maps') if len(line.split(None, 5)) == 6}
told['maps elsewhere'] = sorted(p for p in paths if p.startswith('/') and not os.path.exists(p))
told['processes'] = sorted(open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit())
told['home'] = sorted(os.path.join(at, f) for at, _, files in os.walk('/tmp') for f in files)
told['environment'] = dict(os.environ)
told['raw environment'] = sorted(open('/proc/self/environ').read().split(chr(0)))
told['session keyring'] = [line.split()[2] for line in open('/proc/self/status') if line.startswith('x')]
"""
INTERPRETER = """
told['flags'] = str(sys.flags)
told['arguments'] = (sys.argv, sys.orig_argv, sys.executable, sys.prefix, sys.exec_prefix, sys.base_prefix)
told['path'] = vars(sys)['path']
told['streams'] = [(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.seekable(), s.isatty()) for s in
                   (sys.stdin, sys.stdout, sys.stderr)]
told['main'] = sorted(k for k in globals() if k.startswith('__'))
told['frames'] = []
frame = sys._getframe()
while frame: told['frames'].append(frame.f_code.co_name); frame = frame.f_back
ours = ('zygote', 'user_program', 'render', 'page_text', 'frames', 'program_run', 'environment', 'session',
        'runner_protocol', 'launcher')
told['ours'] = sorted(n for n in vars(sys)['modules'] if n.partition('.')[0] in ours)
told['hooks'] = (sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__,
                 len(vars(sys)['meta_path']), len(vars(sys)['path_hooks']))
told['recursion'] = sys.getrecursionlimit()
import signal, threading
told['signals'] = {str(s): str(signal.getsignal(s)) for s in sorted(signal.valid_signals())}
told['threads'] = [t.name for t in threading.enumerate()]
import gc
told['gc'] = (gc.isenabled(), gc.get_threshold())
"""


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("probe", [IDENTITY, PLACES, INTERPRETER], ids=["identity", "places", "interpreter"])
def test_a_forked_program_sees_what_a_launched_one_sees(forking, launching, probe, flavour):
    forked, launched = both(forking, launching, probe, flavour)
    for told in (forked, launched):
        # Each container has a user of its own, which owns what is the program's.
        users = {*map(int, told.pop("Uid", ())), *told.pop("owner", ())}
        assert len(users) <= 1
        assert all(is_of_sandboxes(user) for user in users)
    assert forked == launched


def test_a_forked_program_holds_no_right_and_no_descriptor(forking):
    told = forking.probe(
        "import os\nrows = dict(line.split(':', 1) for line in open('/proc/self/status') if ':' in line)\n"
        "for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp'):\n"
        "    told[name] = rows[name].split()\n"
        "for name in ('Uid', 'Gid', 'Groups'):\n    told[name] = rows[name].split()\n"
        "told['fds'] = [fd for fd in range(1024) if os.path.lexists(f'/proc/self/fd/{fd}')]"
    )
    assert {is_of_sandboxes(user) for user in told.pop("Uid")} == {True}
    assert told == {
        **{name: ["0000000000000000"] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
        "NoNewPrivs": ["1"],
        "Seccomp": ["2"],
        "Gid": ["10001"] * 4,
        "Groups": ["10001"],
        # The fourth is that of the folder that is being listed.
        "fds": [0, 1, 2],
    }


# ---- from the host


class _Filter(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


def filters_of(pid: int) -> list[bytes]:
    """The system call filters of a process, read as a debugger reads them."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    seize, interrupt, detach, get_filter = 0x4206, 0x4207, 17, 0x420C
    assert libc.ptrace(seize, pid, None, None) == 0, os.strerror(ctypes.get_errno())
    try:
        assert libc.ptrace(interrupt, pid, None, None) == 0
        os.waitpid(pid, 0x40000000)  # __WALL
        found: list[bytes] = []
        while (count := libc.ptrace(get_filter, pid, len(found), None)) > 0:
            program = (_Filter * count)()
            assert libc.ptrace(get_filter, pid, len(found), program) == count
            found.append(bytes(program))
        return found
    finally:
        libc.ptrace(detach, pid, None, None)


def allowed(program: bytes, number: int) -> list[bool]:
    """Whether a filter allows a call, with some of the arguments that filters look at."""
    looked_at = ((), (1,), (2, 1), (16, 3), (0x7E020000,), (0x20000000,), (0x003D0F00,), (0xFFFFFFFF,), (8,))
    return [verdict(program, number, *arguments) == ALLOWED for arguments in looked_at]


def processes_of(service: ServiceProcess) -> dict[str, int]:
    """The processes of the container whose program sleeps: process 1, and the program, as this machine counts."""
    [box] = eventually(service.busy, lambda busy: len(busy) == 1)
    return processes_in(box)


def processes_in(box: str) -> dict[str, int]:
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(entry.name)
            groups, command = (entry / "cgroup").read_text(), (entry / "cmdline").read_bytes()
            if box.rpartition("/")[2] in groups and not any(name in command for name in (b"sleep", b"inspecting")):
                found["program" if b"launcher" in command else "first"] = pid
    return found


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_as_the_host_sees_it_a_forked_program_is_confined_as_process_1_is(forking, flavour):
    last = FLAVOURS[flavour][0]
    body = request(f"import subprocess\nsubprocess.run(['sleep', '987'])\n{last}")
    assert forking.post(body, Prefer="respond-async").status_code == 202
    try:
        found = processes_of(forking)
        assert set(found) == {"first", "program"}
        spaces = {
            who: {entry.name: str(entry.readlink()) for entry in Path(f"/proc/{pid}/ns").iterdir()}
            for who, pid in found.items()
        }
        groups = {who: Path(f"/proc/{pid}/cgroup").read_text() for who, pid in found.items()}
        roots = {who: str(Path(f"/proc/{pid}/root").readlink()) for who, pid in found.items()}
        filters = {who: filters_of(pid) for who, pid in found.items()}
        assert (spaces["program"], groups["program"], roots["program"]) == (
            spaces["first"],
            groups["first"],
            roots["first"],
        )
        ours = {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("pid", "mnt", "net", "ipc", "uts")}
        assert {name for name, link in ours.items() if spaces["program"][name] == link} == set()
        assert [len(kept) for kept in filters.values()] == [1, 1]
        [[program], [first]] = filters["program"], filters["first"]
        # runc puts something in front of its filters, by which calls newer than the profile are unknown ones.
        assert [n for n in range(1_000) if allowed(program, n) != allowed(first, n)] == []
    finally:
        forking.cancel(body)
        eventually(forking.busy, lambda busy: busy == [])


def test_a_fork_that_waits_for_its_call_holds_its_streams_and_the_socket_to_process_1(forking):
    def waiting() -> dict[str, int]:
        return next((found for found in map(processes_in, forking.containers()) if "program" in found), {})

    def held() -> dict[str, str]:
        pid = waiting().get("program")
        return {} if pid is None else kinds_held_by(pid)

    wanted = {"0": "/dev/null", "1": "pipe", "2": "pipe", "3": "socket"}
    # One that has just come closes yet what it does not keep.
    assert eventually(held, lambda found: found == wanted) == wanted


# ---- what forks share, and what they must not


def test_no_two_forks_draw_the_same_numbers_or_names(forking):
    code = (
        "import os, sys\nimport numpy, random, tempfile, uuid, secrets\n"
        "told = [numpy.random.rand(), numpy.random.default_rng().random(), random.random(), tempfile.mktemp(),"
        " str(uuid.uuid4()), secrets.token_hex(8), os.urandom(8).hex()]\n"
        "open('out.txt', 'w').write(repr(told))"
    )
    drawn = [eval(said(forking, code)) for _ in range(3)]
    assert [len(set(column)) for column in zip(*drawn, strict=True)] == [3] * 7


def test_a_seed_that_a_program_sets_gives_the_numbers_it_always_gave(forking, launching):
    code = (
        "import numpy, random\nnumpy.random.seed(7); random.seed(7)\n"
        "open('out.txt', 'w').write(repr((numpy.random.rand(3).tolist(), random.random())))"
    )
    assert said(forking, code) == said(launching, code)


def test_a_program_imports_its_own_module_where_one_of_ours_has_the_same_name(forking):
    names = (
        *("frames", "program_run", "zygote", "user_program", "launcher", "environment", "runner_protocol"),
        *("render", "page_text", "session", "request"),
    )
    told = forking.probe(
        "import importlib, pathlib\n"
        f"for name in {names!r}:\n"
        "    pathlib.Path(name + '.py').write_text('whose = \"mine\"')\n"
        "    told[name] = importlib.import_module(name).whose\n"
        "import weasyprint"
    )
    assert told == dict.fromkeys(names, "mine")


def test_a_program_without_libraries_finds_its_own_modules_of_standard_names(forking, launching):
    code = (
        "import importlib, os\n"
        "names = ('csv', 'glob', 'html', 'logging', 'pathlib', 'random', 'statistics', 'string', 'uuid')\n"
        "for name in names: open(name + '.py', 'w').write('mine = True')\n"
        "told = {name: hasattr(importlib.import_module(name), 'mine') for name in names}\n"
        "for name in names: os.remove(name + '.py')\n"
        "open('out.txt', 'w').write(repr(told))"
    )
    assert said(forking, code) == said(launching, code)
    assert "False" not in said(launching, code)


def test_a_program_finds_the_typesetter_as_it_comes_though_our_renderer_changes_it(forking, launching):
    code = (
        "import pydyf, weasyprint\n"
        "from weasyprint.document import Page\n"
        "owners = (Page, pydyf, pydyf.PDF, pydyf.Stream, weasyprint.draw, weasyprint.pdf, weasyprint.pdf.fonts)\n"
        "names = {f'{owner.__name__}.{name}': getattr(value, '__module__', None)\n"
        "         for owner in owners for name, value in vars(owner).items() if name[:2] != '__'}\n"
        "open('out.txt', 'w').write(repr(sorted(names.items(), key=str)))"
    )
    found = said(forking, code)
    assert ("'render." in found, "'weasyprint." in found) == (False, True)
    assert found == said(launching, code)


# Figures while settings and the list of fonts change, and with families that are missing; what is warned of.
DRAWS = """
import hashlib, logging, pathlib, matplotlib.pyplot as plt, pandas
from matplotlib import font_manager, units
heard = []
logger = logging.getLogger('matplotlib.font_manager')
handler = logging.Handler()
handler.emit = lambda record: heard.append(record.getMessage())
logger.addHandler(handler)
drawn = [sorted(plt.get_fignums()), sorted(map(str, units.registry))]
def draw(**settings):
    plt.rcParams.update(settings)
    pandas.DataFrame({'a': [1, 2], 'b': [3, 1]}).plot(kind='bar', title='Año 中 한')
    plt.savefig('x.png', metadata={'Software': None})
    plt.close()
    drawn.append(hashlib.sha256(pathlib.Path('x.png').read_bytes()).hexdigest())
draw()
draw()
draw(**{'font.family': ['serif', 'NanumGothic'], 'font.serif': ['Liberation Serif']})
draw(**{'font.serif': ['Noto Serif']})
path = font_manager.findfont('Liberation Mono')
found = next(font for font in font_manager.fontManager.ttflist if font.fname == path)
fonts = font_manager.fontManager.ttflist
fonts[0] = font_manager.FontEntry(**{**vars(found), 'name': 'Noto Serif'})
font_manager.fontManager._findfont_cached.cache_clear()
draw()
draw(**{'font.family': ['Absent', 'DejaVu Sans']})
draw(**{'font.family': ['Missing']})
drawn.append((len(heard), sorted(set(heard))))
pathlib.Path('out.txt').write_text(repr(drawn))
"""


@pytest.mark.slow
def test_charts_are_the_same_whether_fonts_were_looked_for_before_or_not(forking, launching):
    *drawn, (warnings, texts) = eval(said(forking, DRAWS))
    figures, _, first, again, *others, absent, missing = drawn
    assert (figures, first == again, len({first, *others})) == ([], True, 4)
    assert (len(texts), absent == missing) == (2, True)
    *as_launched, (more_warnings, same_texts) = eval(said(launching, DRAWS))
    assert (drawn, texts, warnings) == (as_launched, same_texts, more_warnings)


# Fonts that are open as files once a chart has been drawn, with a bold text in it too.
OPENS = """
import os, matplotlib.pyplot as plt
def font_files():
    paths = [os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd') if int(fd) > 2
             and os.path.lexists(f'/proc/self/fd/{fd}')]
    return sorted(path.rpartition('/')[2] for path in paths if path.endswith(('.ttf', '.otf', '.ttc')))
plt.plot([1, 3, 2])
plt.savefig('x.png')
regular = font_files()
plt.title('A title', fontweight='bold')
plt.savefig('x.png')
open('out.txt', 'w').write(repr((regular, len(font_files()) > len(regular))))
"""


def test_fonts_hold_no_files_open_in_a_fork_and_in_a_program_that_was_launched(forking, launching):
    assert [eval(said(side, OPENS)) for side in (forking, launching)] == [([], False)] * 2


# A picture after it was saved, changed, or never drawn; sizes of texts; who is told of drawings; files with fonts.
LOOKS = """
import hashlib, pathlib, matplotlib.pyplot as plt
from matplotlib import font_manager
told = []
def made(title='A title, $x^2$, 中'):
    figure, axes = plt.subplots(figsize=(3, 2))
    axes.plot([1, 3, 2], label='line')
    axes.set_title(title)
    axes.legend()
    return figure
def picture(figure):
    told.append((hashlib.sha256(bytes(figure.canvas.buffer_rgba())).hexdigest(), figure.canvas.get_width_height()))
figure = made()
told.append(hasattr(figure.canvas, 'renderer'))
plt.savefig('x.png', dpi=50)
picture(figure)
told.append((figure.canvas.renderer.dpi, hashlib.sha256(bytes(figure.canvas.tostring_argb())).hexdigest()))
figure = made()
plt.savefig('x.png', transparent=True, bbox_inches='tight')
figure.axes[0].set_title('Another')
plt.draw()
picture(figure)
figure = made()
plt.savefig('x.png', dpi=37)
told.append(tuple(map(float, figure.axes[0].title.get_window_extent().bounds)))
figure = made()
note = figure.axes[0].annotate('note', (1, 2), (10, 20), textcoords='offset points')
plt.savefig('x.png', dpi=37, bbox_inches='tight')
told.append(tuple(map(float, note.get_window_extent().bounds)))
figure = made()
counted = []
figure.canvas.mpl_connect('draw_event', counted.append)
plt.savefig('x.png')
plt.draw()
told.append(len(counted))
plt.rcParams['svg.hashsalt'] = 'x'
plt.rcParams['svg.fonttype'] = 'path'
for name, metadata in (('x.svg', {'Date': None}), ('x.pdf', {'CreationDate': None})):
    plt.savefig(name, metadata=metadata)
    told.append(hashlib.sha256(pathlib.Path(name).read_bytes()).hexdigest())
font = font_manager.get_font(font_manager.findfont('DejaVu Sans'))
told.append((font.fname, font.get_width_height(), font.get_descent(), sorted(font.get_sfnt_table('head').items())))
table = font.get_sfnt_table('OS/2')
table.clear()
told.append((len(font.get_sfnt_table('OS/2')), font.get_sfnt_table('pclt')))
pathlib.Path('out.txt').write_text(repr(told))
"""


@pytest.mark.slow
def test_a_figure_looks_the_same_whether_it_was_drawn_at_once_or_when_it_is_looked_at(forking, launching):
    forked = eval(said(forking, LOOKS))
    # Who listens is told of the drawing into the file, of the one after it, and of the one that was asked for.
    assert (forked[0], forked[6]) == (False, 3)
    assert forked == eval(said(launching, LOOKS))


# Glyphs of a font and of one that it falls back on, as their sizes and transformations change.
SIZES = """
import hashlib
from matplotlib import font_manager, ft2font
font = font_manager.get_font(font_manager.fontManager._find_fonts_by_props(font_manager.FontProperties()))
told = []
def look():
    font.clear()
    font.set_text('A 中', 0.0, flags=ft2font.LoadFlags.DEFAULT)
    font.draw_glyphs_to_bitmap()
    told.append((font.get_width_height(), font.get_descent(), hashlib.sha256(bytes(font.get_image())).hexdigest()))
for size in (10, 10, 20, 10, 30, 10):
    font.set_size(size, 100)
    look()
font._get_fontmap('中')['中'].set_size(30, 100)
look()
font.set_size(10, 100)
look()
try:
    font.set_size('x', 100)
except TypeError:
    font.set_size(dpi=100, ptsize=10)
    look()
open('out.txt', 'w').write(repr((font._get_fontmap('A中')['中'] is not font, told)))
"""


def test_a_font_has_the_size_that_was_set_last_whatever_was_set_before(forking, launching):
    falls_back, looks = eval(said(forking, SIZES))
    assert (falls_back, len(looks), len(set(looks)) > 2) == (True, 9, True)
    assert (falls_back, looks) == eval(said(launching, SIZES))


@pytest.mark.timeout(45)
def test_a_call_with_little_memory_that_imports_libraries_is_answered(forking):
    """Not after the minute that the service waits for what was killed."""
    limits = {"memory_bytes": 32 * 1024 * 1024}
    answer = forking.call("import numpy\nopen('out.txt', 'w').write('x')", limits=limits)
    assert (answer["ok"], "memory" in answer["report"]) in {(True, False), (False, True)}


def test_a_call_finds_nothing_that_the_call_before_it_did_to_its_libraries(forking):
    forking.call("import numpy\nnumpy.mine = 1\nopen('out.txt', 'w').write('x')")
    code = "import numpy\nopen('out.txt', 'w').write(str(hasattr(numpy, 'mine')))"
    assert said(forking, code) == "False"


def test_files_that_a_program_leaves_open_are_written_and_its_last_words_are_said(forking, launching):
    code = (
        "import numpy, atexit, weakref\n"
        "class Last:\n    def __del__(self): print('deleted', flush=True)\n"
        "kept = Last(); numpy.mine = lambda: file\n"
        "file = open('left.txt', 'w'); file.write('whole')\n"
        "atexit.register(print, 'at exit')\n"
        "weakref.finalize(kept, print, 'finalized')\n"
        "open('out.txt', 'w').write('x')\nprint('no newline', end='')\n"
        "raise SystemExit(7)"
    )
    promised = ("out.txt", "left.txt")
    forked, launched = (service.call(code, *promised) for service in (forking, launching))
    assert forked["usage"]["exit_code"] == launched["usage"]["exit_code"] == 7
    assert [a["verdict"] for a in forked["artifacts"]] == [a["verdict"] for a in launched["artifacts"]]
    assert {a["verdict"] for a in forked["artifacts"]} == {"produced"}
    for part in ("no newline", "at exit", "finalized"):
        assert (part in forked["report"], part in launched["report"]) == (True, True)
    assert ("deleted" in forked["report"]) >= ("deleted" in launched["report"])


# ---- the stream to the runner


HOLDS_OUR_NAME = """
import os, socket
held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
held.bind(b"\\0proofbox")
held.listen(1)
{way}
memory = b"x" * 300_000_000  # which the kernel takes back before the socket
open("/out/files/out.txt", "w").write("kept")
os._exit(0)
"""
IN_FLIGHT = """
left, right = socket.socketpair()
socket.send_fds(left, [b"."], [held.fileno(), left.fileno(), right.fileno()])
"""


@pytest.mark.parametrize("way", ["", IN_FLIGHT], ids=["until its end", "and beyond, in flight to itself"])
def test_a_program_that_holds_the_name_by_which_an_inspector_comes_keeps_nobody_out(forking, way):
    answer = forking.call(HOLDS_OUR_NAME.format(way=way))
    assert (answer["ok"], verdicts(answer)) == (True, {"out.txt": "produced"})


def streams_of(service: ServiceProcess) -> set[str]:
    """What standard input and output of the runners are that wait."""
    kinds = set()
    for pid in processes_in_groups_of(service.containers()):
        with contextlib.suppress(OSError):
            if b"-S\0/opt/proofbox/runner" in Path(f"/proc/{pid}/cmdline").read_bytes():
                ends = (Path(f"/proc/{pid}/fd/{fd}").readlink() for fd in (0, 1))
                kinds |= {str(end).partition(":")[0] for end in ends}
    return kinds


def test_the_stream_goes_past_the_engine_where_it_can_be_taken_from_the_container(forking):
    assert eventually(lambda: streams_of(forking), lambda kinds: kinds == {"socket"}) == {"socket"}
    assert forking.call("open('out.txt', 'w').write('x')")["ok"] is True


def test_else_it_goes_the_way_that_the_engine_made(launching, engine_name):
    made = {"docker": "pipe", "oci": "socket"}[engine_name]
    assert eventually(lambda: streams_of(launching), lambda kinds: kinds == {made}) == {made}
    assert launching.call("open('out.txt', 'w').write('x')")["ok"] is True


# ---- when the zygote dies


def zygotes_of(service: ServiceProcess, engine: str) -> list[int]:
    """The zygotes of interpreters and inspectors, as this machine counts."""
    if engine == "docker":
        command = ["docker", "ps", "--quiet", "--no-trunc", "--filter", f"label=proofbox.zygote-of={service.name}"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    else:
        names = OciSide()._place(service.name).zygotes()
    return processes_in_groups_of(names)


def processes_in_groups_of(names: list[str]) -> list[int]:
    """Processes whose control groups carry one of these names, as this machine counts."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(entry.name)
            if any(name in (entry / "cgroup").read_text() for name in names):
                found.append(pid)
    return found


@pytest.mark.slow
def test_calls_go_on_when_every_zygote_is_killed_and_new_ones_take_over(tmp_path, engine_name):
    side = side_of(engine_name)
    with serving(tmp_path / "data", side, engine=engine_name, import_once="on", pool_size=1) as service:
        before = eventually(lambda: zygotes_of(service, engine_name), lambda found: len(found) >= 2)
        for pid in before:
            with contextlib.suppress(ProcessLookupError):  # one that only forked, and has ended
                os.kill(pid, signal.SIGKILL)
        for _ in range(3):
            assert service.call("open('out.txt', 'w').write('x')")["ok"] is True
        after = eventually(lambda: zygotes_of(service, engine_name), lambda found: len(found) >= 2)
        assert (len(after) >= 2, set(after) & set(before)) == (True, set())
        assert service.call("open('out.txt', 'w').write('x')")["ok"] is True
    side.close()


@pytest.mark.slow
def test_when_the_service_is_killed_its_zygotes_end_and_leave_nothing(tmp_path, engine_name):
    side = side_of(engine_name)
    with serving(tmp_path / "data", side, engine=engine_name, import_once="on", pool_size=1) as service:
        zygotes = eventually(lambda: zygotes_of(service, engine_name), lambda found: len(found) >= 2)
        service.signal(signal.SIGKILL)
        service.wait()
        left = eventually(
            lambda: [p for p in zygotes if Path(f"/proc/{p}/exe").exists()], lambda found: found == []
        )
        assert left == []
        assert eventually(lambda: zygotes_of(service, engine_name), lambda found: found == []) == []
    side.close()


@pytest.mark.slow
def test_what_cannot_be_had_and_is_demanded_is_told_in_one_line_at_the_start(tmp_path):
    side = side_of(Settings().engine)
    service = ServiceProcess(tmp_path / "data", side, engine="docker", import_once="on", runtime="runsc")
    service.launch()
    service.wait()
    why = "which is impossible with PROOFBOX_RUNTIME runsc; set it to auto or off"
    told = f"proofbox: PROOFBOX_IMPORT_ONCE is on, {why}"
    assert service.complaints == [told]
    side.close()
