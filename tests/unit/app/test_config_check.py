"""The check of a configuration: all mistakes of environment, file and combinations at once."""

import pytest

from proofbox.service.app.config.check import find_mistakes, find_warnings


def sentences(*, options=None, **environment):
    given = {f"PROOFBOX_{name.upper()}": str(value) for name, value in environment.items()}
    return [mistake.sentence for mistake in find_mistakes(given, options)]


def test_no_setting_at_all_is_right():
    assert sentences() == []


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"poolsize": 3}, "environment: PROOFBOX_POOLSIZE: not a setting; did you mean PROOFBOX_POOL_SIZE?"),
        (
            {"wall_s": "soon"},
            ('environment: PROOFBOX_WALL_S: must be a number (got "soon"); correct or unset it;'),
        ),
        ({"asset_roots": "/x"}, 'environment: PROOFBOX_ASSET_ROOTS: is not JSON (got "/x"); write a list'),
        (
            {"web_search_url": "nowhere"},
            "environment: PROOFBOX_WEB_SEARCH_URL: 'nowhere' is no http or https address",
        ),
    ],
)
def test_a_mistake_of_the_environment_names_variable_value_and_remedy(environment, sentence):
    [found] = sentences(**environment)
    assert found.startswith(sentence)


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        ({"auth": "off", "host": "0.0.0.0"}, "PROOFBOX_AUTH is off and PROOFBOX_HOST 0.0.0.0 is reached by others"),
        ({"body_bytes_max": 2048, "bodies_bytes_max": 1024}, "PROOFBOX_BODY_BYTES_MAX 2048 is more than"),
        ({"import_once": "on", "runtime": "runsc"}, "PROOFBOX_IMPORT_ONCE is on"),
        ({"engine": "oci", "runtime": "runsc"}, "PROOFBOX_RUNTIME runsc is for the engine docker"),
        ({"audit_file": "/x", "audit_heads_file": "/x"}, "PROOFBOX_AUDIT_HEADS_FILE and PROOFBOX_AUDIT_FILE name"),
        ({"s3_prefix": "a"}, "PROOFBOX_S3_PREFIX is set and PROOFBOX_S3_BUCKET is not"),
        ({"s3_bucket": "b", "s3_access_key": "k"}, "PROOFBOX_S3_ACCESS_KEY and PROOFBOX_S3_SECRET_KEY"),
        ({"total_pids": 9, "pids": 10}, "PROOFBOX_TOTAL_PIDS 9 is less than what one sandbox may take"),
        ({"total_memory_bytes": 9}, "PROOFBOX_TOTAL_MEMORY_BYTES 9 is less than what one sandbox may take"),
        ({"out_dir_bytes": 2**30}, "PROOFBOX_OUT_DIR_BYTES 1073741824 is over half of PROOFBOX_MEMORY_BYTES"),
    ],
)
def test_a_combination_that_cannot_work_is_refused(environment, settings):
    [found] = sentences(**environment)
    assert found.startswith(settings)
    assert "; " in found  # what to do


@pytest.mark.parametrize(
    ("environment", "warning"),
    [
        ({"pool_memory_bytes": 1000}, "PROOFBOX_POOL_MEMORY_BYTES 1000 is less than one waiting container"),
        ({"pool_reserve": 2, "pool_size": 0}, "PROOFBOX_POOL_RESERVE is 2 and PROOFBOX_POOL_SIZE 0"),
        ({"oci_runtime": "crun"}, "PROOFBOX_OCI_RUNTIME is for the engine oci, PROOFBOX_ENGINE is docker"),
        ({"librechat_key_file": "/k"}, "PROOFBOX_LIBRECHAT_KEY_FILE is set and PROOFBOX_LIBRECHAT is not"),
        (
            {"sandbox_network_secrets": '{"K": {"hosts": ["a.test"], "projects": ["*/*"], "variable": "X"}}'},
            "PROOFBOX_SANDBOX_NETWORK_SECRETS has K for a.test:443, which PROOFBOX_SANDBOX_NETWORK does not allow",
        ),
    ],
)
def test_a_setting_without_effect_is_a_warning_and_refuses_no_start(environment, warning):
    given = {f"PROOFBOX_{name.upper()}": str(value) for name, value in environment.items()}
    assert find_mistakes(given) == []
    [found] = find_warnings(given)
    assert found.sentence.startswith(warning)
    assert "; " in found.sentence


def test_more_containers_may_wait_at_the_start_than_under_load():
    given = {"PROOFBOX_POOL_SIZE": "50", "PROOFBOX_POOL_MAX": "3"}
    assert (find_mistakes(given), find_warnings(given)) == ([], [])


def test_a_warning_names_the_line_of_the_file(tmp_path):
    file = tmp_path / "proofbox.toml"
    file.write_text('\noci_runtime = "crun"\n')
    [found] = find_warnings({"PROOFBOX_CONFIG": str(file)})
    assert found.where == f"{file}, line 2"


def test_all_mistakes_are_listed_at_once_and_combinations_with_wrong_values_are_left_out(tmp_path):
    file = tmp_path / "proofbox.toml"
    limits = "[limits]\nout_dir_bytes = 1073741824\nmemory_bytes = 1073741824\n"
    file.write_text(f'{limits}[server]\nauth = "off"\nhost = 7\ncolour = 1\n')
    found = sentences(config=file, wall_s="soon", poolsize=1)
    assert [sentence.split(":")[-1 if "half" in sentence else 0] for sentence in found[:2]] == ["environment"] * 2
    assert [sentence.removeprefix(f"{file}, ")[:22] for sentence in found[2:]] == [
        "line 6: host: must be ",
        "line 7: colour: not a ",
        f"line 2 and {file}, line 3"[:22],
    ]


def test_a_combination_with_a_wrong_value_is_no_second_mistake():
    [found] = sentences(out_dir_bytes=2**30, memory_bytes="much")
    assert found.startswith("environment: PROOFBOX_MEMORY_BYTES: must be a whole number")


def test_what_the_environment_or_an_option_replaces_counts_no_more(tmp_path):
    file = tmp_path / "proofbox.toml"
    file.write_text('auth = "off"\nhost = "0.0.0.0"\n')
    assert len(sentences(config=file)) == 1
    assert sentences(config=file, auth="required") == []
    assert sentences(config=file, options={"host": "127.0.0.1"}) == []


def test_no_secret_is_in_a_message(tmp_path):
    found = sentences(database_url_file=tmp_path / "none", s3_secret_key="hush", s3_bucket="b", port="hush-port")
    assert not any("hush" in sentence.replace("hush-port", "") for sentence in found)
    assert len(found) == 3


@pytest.mark.parametrize(
    "address",
    [
        "https://user:hush@h/x y",
        "https://user:hu/hush@h/x y",
        "https://user:hu?hush@h/x y",
        "https://user:hush@@h/x y",
        "ftp://h/x?key=hush",
        "ftp://h/x?key=a@hush",
        "ftp://h/x#hush",
        "user:hush@h:4318",
        "user:hu/hush@h:4318",
    ],
)
@pytest.mark.parametrize("name", ["otlp_endpoint", "web_search_url", "s3_endpoint"])
def test_no_password_or_key_of_an_address_is_in_a_message(name, address, tmp_path):
    file = tmp_path / "proofbox.toml"
    file.write_text(f'{name} = "{address}"\n')
    for given in ({name: address}, {"config": file}):
        assert "hush" not in "".join(sentences(**given))
