"""What the installed hosts write themselves, and whether our table has all of it.

A host's next version tells us what it changed.
"""

import re

import host_sources
import make_hosts
import pytest

from optchat.base import host_phrases
from optchat.base.host_phrases import Mark, Phrase

pytestmark = pytest.mark.hosts


def entries(kind):
    """Every entry of the table, also those in groups."""
    values = [value for name, value in vars(host_phrases).items() if not name.startswith("_")]
    flat = [one for value in values for one in (value if type(value) is tuple else (value,))]
    return [entry for entry in flat if type(entry) is kind]


@pytest.fixture(params=["a", "b"])
def name(request):
    if not make_hosts.is_made(request.param):
        pytest.skip(f"host {request.param} is not installed")
    return request.param


@pytest.mark.parametrize("kind", [Phrase, Mark])
def test_every_entry_is_in_the_source_it_names(name, kind):
    """A phrase that is gone was reworded: the reworded one would be logged as the user's words."""
    gone = []
    for entry in entries(kind):
        where = getattr(entry, name)
        if where and not is_there(name, entry, *where.split(":")):
            gone.append(f"{where} {entry[0]} {entry[-1]}")
    assert gone == []


def is_there(host, entry, file, function):
    words = (entry.words,) if isinstance(entry, Phrase) else (entry.value or entry.key,)
    texts = [
        text.text for text in host_sources.texts(host, file) if function in ("", text.function)
    ]
    return all(any(word in text for text in texts) for word in words if word)


def test_every_entry_names_a_source():
    assert [
        entry for kind in (Phrase, Mark) for entry in entries(kind) if not (entry.a or entry.b)
    ] == []


# -- what a host writes and the table has not

HEAD = re.compile(r"\s*\[(?=[A-Z])[^\]\n]{0,60}?(?: |—)")
"""A text that begins like a note to a model: a bracket, a capital, and more than one word."""

NO_ENTRIES = {
    "stands for what the user sent, and says so": (
        "[Attached ",
        "[Attachment: ",
        "[Binary ",
        "[Content of ",
        "[Could not read attached ",
        "[Document: ",
        "[Embedded image ",
        "[GIF ",
        "[Image",
        "[Interactive message]",
        "[Merged forward message]",
        "[Pasted text #",
        "[Photon ",
        "[Resource link only",
        "[Rich text message]",
        "[Shared chat]",
        "[Slack Block Kit payload",
        "[Subject: ",
        "[The user sent a sticker",
        "[The user sent an animated sticker",
        "[The user shared a location",
        "[Truncated to ",
        "[User attached ",
        "[User sent ",
    ),
    "a tool's result, in the agent's own work": (
        "[BLOCKED: ",
        "[Bundle context: ",
        "[Command ",
        "[Duplicate tool output",
        "[EXTRACTION COVERAGE",
        "[FOREGROUND — ",
        "[Hint: ",
        "[IMAGE: ",
        "[MCP ",
        "[NEEDS OCR: ",
        "[NOTE: subagent modified",
        "[Old tool output",
        "[Orphan recovery: ",
        "[SUMMARY TRUNCATED]",
        "[Subdirectory context",
        "[Summarized from ",
        "[The referenced result",
        "[Tool execution ",
        "[REDACTED",
    ),
    "in the system prompt or in the sent copy only: no list shows it": (
        "[IMPORTANT: The user launched this CLI session",
        "[Note: Some earlier conversation turns",
        "[Voice channel: #",
        "[Context from the interrupted assistant response]",
        "[This response was interrupted by a user correction.]",
        "[A multimodal message was converted",
        "[An image was attached but no image source",
        "[Assistant image omitted",
        "[If you need a closer look",
        "[The {} attached an image",
        "[The previous response was interrupted",
        "[Mixture of Agents",
        "[Reference models unavailable",
        "[The conversation above is",
        "[Observed Telegram attachment",
    ),
    "a prompt of another model, of a child or of a summary": (
        "[ASSISTANT",
        "[Earlier conversation digest",
        "[Earlier content omitted",
        "[Historical cron",
        "[NO user-authored",
        "[Pre-compression context]",
        "[Questions ",
        "[Reply truncated",
        "[RetainDB ",
        "[Runtime, configuration",
        "[THE SINGLE MOST",
        "[TOOL RESULT",
        "[TRUNCATED: ",
        "[Tool calls:",
        "[Turn {}",
        "[User preferences",
        "[WORKTREE ISOLATION]",
        "[What ",
        "[Write exactly",
    ),
    "inside a wrapper that the table has": ("[Skill directory: ", "[You can examine it"),
    "shown to a person, or sent by the agent": (
        "[Desktop Entry]",
        "[HERMES_HOME ",
        "[HTTP ",
        "[Hermes #",
        "[Sent ",
        "[Telegram ",
        "[You #",
    ),
}
KEYS_OF_NO_ENTRY = {
    "which message it is, and where it is kept": (
        "_absorbed_message_uids",
        "_absorbed_row_ids",
        "_canonical_row",
        "_db_persisted",
        "_db_row_snapshot",
        "_row_id",
        "_submit_row_session_id",
        "_submit_user_row",
        "_tool_call_uid",
        "_tool_call_uids",
        "_merged_turn_prefix",
        "_merged_durable_rows",
        "_unnamed_durable_rows",
        "_retired_durable_rows",
        "_persist_after_admission_interrupt",
        "_compaction_tail",
        "_synced",
        "_lineage_root",
        "_resolved_from",
    ),
    "beside the summary's own flag": ("_compressed_summary_has_user_turn", "_micro_compact_marker"),
    "for the request alone": ("_thinking_signature_invalidated", "_tool_output_risk"),
}


def is_listed(text):
    """Whether a phrase of the table begins a text, as far as the text is known before it runs."""
    text = text.strip()
    known = text.partition("{}")[0]
    words = [entry.words.strip() for entry in entries(Phrase)]
    if any(text.startswith(word) or (len(known) > 11 and word.startswith(known)) for word in words):
        return True
    together = (host_phrases.OUTPUTS_TOGETHER.words, host_phrases.REPORTS_TOGETHER.words)
    return text.startswith("[IMPORTANT: {}") and any(word in text for word in together)


def is_no_entry(text):
    return text.strip().startswith(tuple(head for heads in NO_ENTRIES.values() for head in heads))


@pytest.mark.timeout(900)
def test_no_note_of_a_host_is_missing(name):
    """Looks at every text of the host that begins like a note, in whatever file it stands."""
    found = {
        text.text.strip()[:90]: f"{file}:{text.function}"
        for file in host_sources.files(name)
        for text in host_sources.texts(name, file)
        if HEAD.match(text.text) and not is_listed(text.text) and not is_no_entry(text.text)
    }
    assert found == {}


@pytest.mark.timeout(900)
def test_no_kind_of_row_is_missing(name):
    listed = {mark.value for mark in entries(Mark) if mark.value}
    found = {
        f"{file}: {kind}"
        for file in host_sources.files(name)
        for kind in host_sources.kinds(name, file) - listed
    }
    assert found == set()


@pytest.mark.timeout(900)
def test_no_flag_on_a_message_is_missing(name):
    listed = {mark.key for mark in entries(Mark)} | {
        key for keys in KEYS_OF_NO_ENTRY.values() for key in keys
    }
    found = {
        f"{file}: {key}"
        for file in host_sources.files(name)
        for key in host_sources.flags(name, file) - listed
    }
    assert found == set()


ROWS_OF_NO_ENTRY = (
    *("ping", "hi", "User: ", "Objective:", "TRANSCRIPT TO TAG:", "Reply with exactly one word"),
    *("Latest user message", "[summary]", "[{}|{}]\n"),
)
"""Prompts of other models and of trials; the last is a group's message, under its sender's name."""


@pytest.mark.timeout(900)
def test_no_row_in_the_users_role_is_missing(name):
    """Rows whose words stand in the source.

    Those that take them from a variable are somebody's words.
    """
    found = {
        f"{file}:{line}: {text[:70]}"
        for file in host_sources.files(name)
        for line, text in host_sources.user_rows(name, file)
        if not is_listed(text) and not is_no_entry(text) and not text.startswith(ROWS_OF_NO_ENTRY)
    }
    assert found == set()


def test_what_a_next_version_adds_is_found(tmp_path, monkeypatch):
    """A test of the tests above.

    One module with a phrase, a kind and a flag nobody knows, and a log line.
    """
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "new.py").write_text(
        "logger.info('[Not said to anybody] x')\n"
        "def wake(messages, row, n):\n"
        "    '[In a docstring only] x'\n"
        "    row['display_kind'] = 'moonrise'\n"
        "    msg = {'role': 'user', 'content': f'[Moonrise — the host woke at {n}]', "
        "'_moon_nudge': True}\n"
        "    msg['_moon_too'] = msg\n"
    )
    monkeypatch.setattr(host_sources, "packages", lambda host: tmp_path)
    (file,) = host_sources.files("new")
    heads = [text.text for text in host_sources.texts("new", file) if HEAD.match(text.text)]
    assert heads == ["[Moonrise — the host woke at {}]"]
    assert not is_listed(heads[0])
    assert not is_no_entry(heads[0])
    assert host_sources.kinds("new", file) == {"moonrise"}
    assert host_sources.flags("new", file) == {"_moon_nudge", "_moon_too"}
    assert [text for _, text in host_sources.user_rows("new", file)] == heads
