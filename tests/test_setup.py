"""Setup, settings and packaging, without a host: what it would ask, write and install."""

import io
import json
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

import optchat
from optchat import cli
from optchat.base.errors import SettingsError
from optchat.base.settings import Settings, read_settings
from optchat.config_schema import FIELDS
from optchat.hermes import config_json, dependencies, setup, system_prompt
from optchat.hermes.model import named_model

CHECKOUT = Path(__file__).resolve().parents[1]


@pytest.fixture
def saved(monkeypatch):
    """The host's configurations that were saved; a stand-in for the host's module of that name."""
    kept = []
    module = types.ModuleType("hermes_cli.config")
    module.save_config = kept.append
    module.load_config = lambda: {"auxiliary": {}}
    monkeypatch.setitem(sys.modules, "hermes_cli", types.ModuleType("hermes_cli"))
    monkeypatch.setitem(sys.modules, "hermes_cli.config", module)
    return kept


def run(monkeypatch, home, typed, config=None):
    """What setup said, with these lines typed into it."""
    said = []
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    setup.run(str(home), {} if config is None else config, say=said.append)
    return "\n".join(said)


def stored(home):
    return json.loads((home / "optchat" / "config.json").read_text(encoding="utf-8"))


# -- packaging


def test_the_top_level_loads_without_a_single_package_beyond_the_standard_library():
    """The host executes every file of the top level.

    One import that fails there hides the provider, so nobody can set it up.
    """
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\nimport optchat, optchat.cli, "
        "optchat.config_schema, optchat.__main__\nprint(optchat.OptchatError)"
    )

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(CHECKOUT)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "OptchatError" in done.stdout


def test_the_host_recognises_the_package_in_its_first_8_kilobytes():
    head = (CHECKOUT / "optchat" / "__init__.py").read_text(encoding="utf-8")[:8192]

    assert "MemoryProvider" in head
    assert "register_memory_provider" in head


def test_no_pyproject_lies_in_the_plugin_directory():
    """Its mere presence makes newer hosts fetch an interpreter for the plugin."""
    assert not (CHECKOUT / "optchat" / "pyproject.toml").exists()


def test_the_three_lists_of_dependencies_agree():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    manifest = (CHECKOUT / "optchat" / "plugin.yaml").read_text(encoding="utf-8").splitlines()
    named = [
        line.strip("- ").strip() for line in manifest[manifest.index("pip_dependencies:") + 1 :]
    ]

    assert sorted(dependencies.REQUIREMENTS.values()) == sorted(project["dependencies"])
    assert sorted(named) == sorted(dependencies.REQUIREMENTS)


def test_the_manifest_and_the_command_say_the_version(capsys):
    manifest = (CHECKOUT / "optchat" / "plugin.yaml").read_text(encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])

    assert f"version: {optchat.__version__}\n" in manifest
    assert (ended.value.code, capsys.readouterr().out) == (0, f"optchat {optchat.__version__}\n")


def test_what_is_missing_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "orjson", None)

    assert dependencies.missing() == ["orjson"]
    assert "orjson" in dependencies.advice(["orjson"])
    assert "hermes memory setup optchat" in dependencies.advice(["orjson"])
    assert dependencies.command(["orjson"])[-2:] == ["install", "orjson>=3.9"]
    assert dependencies.advice([]) == ""


# -- settings


def test_every_setting_is_a_field_with_the_same_default():
    assert {field.key for field in FIELDS} == set(Settings.model_fields)
    for field in FIELDS:
        settings, warnings = read_settings({field.key: config_json.default(field)})
        assert warnings == []
        assert settings == Settings()


@pytest.mark.parametrize(
    "field", [field for field in FIELDS if field.choices], ids=lambda field: field.key
)
def test_every_choice_is_a_value_the_settings_take(field):
    for value, meaning in field.choices:
        config_json.check(field, value)
        assert meaning


def test_answers_become_json_of_the_right_kind(tmp_path):
    answers = {
        "view_budget_chars": "24,000",
        "search_tool": "yes",
        "platforms_off": "telegram, cron",
        "model_kinds": '["user"]',
        "summarizer": " local ",
    }

    config_json.save_config(answers, str(tmp_path))

    assert stored(tmp_path) == {
        "view_budget_chars": 24000,
        "search_tool": True,
        "platforms_off": ["telegram", "cron"],
        "model_kinds": ["user"],
        "summarizer": "local",
    }


def test_answers_merge_into_what_a_user_wrote_by_hand(tmp_path):
    file = config_json.config_file(tmp_path)
    file.parent.mkdir()
    file.write_bytes(
        b'\xef\xbb\xbf{"note to self": "\xc3\xbc", "node_bytes": 300, "recall": "turn"}'
    )

    config_json.save_config(
        {"recall": "session", "view_budget_chars": 5000, "unheard_of": 1}, str(tmp_path)
    )

    assert stored(tmp_path) == {
        "note to self": "ü",
        "node_bytes": 300,
        "recall": "session",
        "view_budget_chars": 5000,
    }


def test_a_default_is_not_written_where_nothing_stood(tmp_path):
    config_json.save_config(
        {field.key: config_json.default(field) for field in FIELDS}, str(tmp_path)
    )

    assert not config_json.config_file(tmp_path).exists()


def test_saving_what_is_there_leaves_every_byte(tmp_path):
    file = config_json.config_file(tmp_path)
    file.parent.mkdir()
    file.write_text('{ "recall":"turn" ,\n\n "node_bytes":300}')

    config_json.save_config({"recall": "turn"}, str(tmp_path))

    assert file.read_text() == '{ "recall":"turn" ,\n\n "node_bytes":300}'


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("view_budget_chars", "12"),
        ("summarizer", "magic"),
        ("platforms_off", "[1,"),
        ("compact_jobs", 99),
    ],
)
def test_a_bad_value_is_refused_by_name_and_nothing_is_written(tmp_path, key, value):
    with pytest.raises(SettingsError, match=key):
        config_json.save_config({"recall": "turn", key: value}, str(tmp_path))

    assert not config_json.config_file(tmp_path).exists()


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe", b""])
def test_a_file_that_is_no_json_object_is_never_replaced(tmp_path, content):
    file = config_json.config_file(tmp_path)
    file.parent.mkdir()
    file.write_bytes(content)

    with pytest.raises(SettingsError, match=r"config\.json"):
        config_json.save_config({"recall": "turn"}, str(tmp_path))

    assert file.read_bytes() == content


# -- the dialogue


def test_setup_keeps_what_is_answered_and_activates_last(monkeypatch, tmp_path, saved):
    text = run(
        monkeypatch, tmp_path, "9000\ncontext\n\n\n\n", config={"memory": {"memory_enabled": False}}
    )

    assert stored(tmp_path) == {"view_budget_chars": 9000, "memory_mode": "context"}
    assert saved == [{"memory": {"memory_enabled": False, "provider": "optchat"}}]
    assert "No model is named" in text
    assert "free of cost" in text


def test_enter_on_every_question_writes_nothing(monkeypatch, tmp_path, saved):
    run(monkeypatch, tmp_path, "\n" * 20)

    assert not config_json.config_file(tmp_path).exists()
    assert saved[0]["memory"]["provider"] == "optchat"


def test_three_bad_answers_leave_the_value(monkeypatch, tmp_path, saved):
    text = run(monkeypatch, tmp_path, "x\n1\n-5\n" + "\n" * 9)

    assert text.count("cannot set view_budget_chars") == 3
    assert "Left as it is: 16000" in text
    assert not config_json.config_file(tmp_path).exists()


def test_the_word_none_empties_a_list(monkeypatch, tmp_path, saved):
    config_json.save_config({"platforms_off": ["cron"]}, str(tmp_path))

    run(monkeypatch, tmp_path, "\n\n\n\nnone\n")

    assert stored(tmp_path) == {"platforms_off": []}


def test_ctrl_c_activates_nothing(monkeypatch, tmp_path, saved):
    class Console(io.StringIO):
        def readline(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Console())
    setup.run(str(tmp_path), {}, say=lambda text: None)

    assert saved == []


@pytest.mark.parametrize(
    ("summarizer", "config", "told"),
    [
        ("auto", {}, "free of cost; nothing is sent anywhere"),
        ("auto", {"auxiliary": {"optchat_compact": {"model": "auto"}}}, "No model is named"),
        (
            "auto",
            {"auxiliary": {"optchat_compact": {"model": "tiny-1"}}},
            "The model tiny-1 writes the lines (auxiliary.optchat_compact)",
        ),
        (
            "auto",
            {"auxiliary": {"optchat_compact": {"model": "tiny-1"}}},
            "at most 5,000,000 tokens a day",
        ),
        ("auto", {}, "hermes config set auxiliary.optchat_compact.model NAME"),
        (
            "model",
            {"model": {"default": "huge-9"}},
            "your MAIN model huge-9 writes them, at its price",
        ),
        ("model", {"model": "huge-9"}, "your MAIN model huge-9 writes them, at its price"),
        ("model", {}, "your MAIN model writes them, at its price"),
        (
            "local",
            {"auxiliary": {"optchat_compact": {"model": "tiny-1"}}},
            "on this machine, free of cost (summarizer: local)",
        ),
    ],
)
def test_setup_says_who_writes_the_lines(monkeypatch, tmp_path, saved, summarizer, config, told):
    config_json.save_config({"summarizer": summarizer}, str(tmp_path))

    assert told in run(monkeypatch, tmp_path, "", config=config)


@pytest.mark.parametrize(
    ("limit", "told"), [(1_000, "at most 1,000 tokens a day"), (0, "without a limit for a day")]
)
def test_setup_says_how_much_a_model_may_cost_a_day(monkeypatch, tmp_path, saved, limit, told):
    config_json.save_config({"compact_tokens_per_day": limit}, str(tmp_path))

    assert told in run(
        monkeypatch, tmp_path, "", config={"auxiliary": {"optchat_compact": {"model": "tiny-1"}}}
    )


@pytest.mark.parametrize(
    "config",
    [
        None,
        [],
        {"auxiliary": None},
        {"auxiliary": {"optchat_compact": "x"}},
        {"auxiliary": {"optchat_compact": {"model": 3}}},
    ],
)
def test_a_configuration_of_any_shape_names_no_model_where_it_names_none(config):
    assert named_model(config) == ""


# -- the system prompt


@pytest.mark.parametrize("mode", ["hybrid", "context", "tools"])
def test_the_system_prompt_is_short_and_says_data_not_orders(mode):
    block = system_prompt.BLOCKS[mode]

    assert len(block) < 1800
    assert "instruction" in block
    assert ("optchat_zoom" in block) == (mode != "context")
    assert ("<chat>" in block) == (mode != "tools")
    assert not any(word.isupper() and len(word) > 2 for word in block.split())
