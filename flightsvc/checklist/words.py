"""The list in words, English and Chinese, for people who do not read code."""

from __future__ import annotations

from typing import NamedTuple

from flightsvc.checklist.model import AlertPolicy, Code, FallbackPolicy, StateChange


class Words(NamedTuple):
    """One thing in both languages."""

    en: str
    zh: str


LEVELS = {
    "L1": Words("one request", "单次请求"),
    "L2": Words("the session", "会话"),
    "L3": Words("the whole service", "系统"),
}
CAUSES = {
    "infrastructure": Words("infrastructure", "基础设施"),
    "model": Words("model", "模型层"),
    "input": Words("input", "输入层"),
    "integration": Words("integration", "集成层"),
}
CHANNELS = {
    "webhook": Words("webhook", "Webhook"),
    "wecom": Words("WeChat Work", "企业微信"),
    "email": Words("e-mail", "邮件"),
    "log": Words("log", "日志"),
}
NOTHING = Words("–", "–")
_UNITS = ((86_400, "d", "天"), (3_600, "h", "小时"), (60, "min", "分钟"), (1, "s", "秒"))
_STATES = {
    "freeze_session": Words("freeze the session", "冻结会话"),
    "block_user": Words("no AI for this user", "禁用该用户的 AI 功能"),
    "manual_review": Words("mark for manual review", "标记人工审核"),
    "rollback_model": Words("back to the former model", "切回旧模型"),
    "stop_sync": Words("stop the sync job", "暂停同步任务"),
    "clarifying": Words("session waits for a clarification", "会话进入澄清状态"),
    "awaiting_input": Words("session waits for the user", "会话等待用户输入"),
}


def duration(seconds: int) -> Words:
    """A time in the largest unit that gives a whole number."""
    size, en, zh = next(unit for unit in _UNITS if seconds % unit[0] == 0)
    return Words(f"{seconds // size} {en}", f"{seconds // size} {zh}")


def retry(code: Code) -> Words:
    """When the same call is made again."""
    if code.forbids_retry:
        return Words("never: a second call would do harm", "禁止重试")
    policy = code.retry
    if policy is None:
        return Words("no", "不重试")
    waits = [f"{wait} ms" for wait in policy.delays_ms]
    en = f"after {' and '.join(waits)}"
    zh = f"{'、'.join(waits)} 后重试（共 {len(waits)} 次）"
    if policy.fallback_route_after_ms is not None:
        en += f"; the fallback route {policy.fallback_route_after_ms} ms later"
        zh += f"；再过 {policy.fallback_route_after_ms} ms 走备用路由"
    return Words(en, zh)


def fallback(policy: FallbackPolicy) -> Words:
    """What is done where no attempt brought an answer."""
    given = policy.params
    match policy.action:
        case "smaller_model":
            return Words("ask the smaller model", "降级至小模型")
        case "truncate":
            marker = given.get("marker")
            return Words(
                f"ask with the input cut to {given['max_tokens']} tokens"
                + (f", marked {marker}" if marker else ""),
                f"截断输入至 {given['max_tokens']} token" + (f"，标记 {marker}" if marker else ""),
            )
        case "template":
            return Words(f"answer from the template {given['template']}", "返回预设文案")
        case "last_good":
            age = duration(int(given["max_age_s"]))
            fresh = bool(given.get("refresh"))
            return Words(
                f"the last good answer, at most {age.en} old"
                + ("; a new one is fetched meanwhile" if fresh else ""),
                f"返回 {age.zh}内的最近可用结果" + ("，并异步刷新" if fresh else ""),
            )
        case "clarify":
            return Words("ask which of several things is meant", "发起澄清")
        case "ask_input":
            wait = duration(int(given["wait_s"])) if "wait_s" in given else None
            return Words(
                f"ask the user for {given['field']}" + (f", wait {wait.en}" if wait else ""),
                f"请用户提供 {given['field']}" + (f"，等待 {wait.zh}" if wait else ""),
            )
        case "refuse":
            return Words("refuse, with the message", "拒绝并提示")
        case "manual_review":
            return Words(f"pass to a person (queue {given['queue']})", "转人工处理")
        case "none":
            return Words("nothing: the call fails", "无，直接失败")


def state(change: StateChange | None) -> Words:
    """What changes beside the answer."""
    if change is None:
        return NOTHING
    words = _STATES[change.kind]
    if change.ttl_s:
        long = duration(change.ttl_s)
        words = Words(f"{words.en} for {long.en}", f"{words.zh} {long.zh}")
    if change.after > 1:
        words = Words(
            f"{words.en}, after {change.after} in a row", f"连续 {change.after} 次后{words.zh}"
        )
    return words


def alert(policy: AlertPolicy | None) -> Words:
    """Who is told, and from when on."""
    if policy is None:
        return NOTHING
    window = duration(policy.window_s)
    en, zh = _channels(policy)
    if policy.rate is None:
        return Words(
            f"{policy.severity} at {policy.count} in {window.en}: {en}",
            f"{policy.severity}：{window.zh}内 {policy.count} 次，{zh}",
        )
    share = f"{policy.rate * 100:g} %"
    return Words(
        f"{policy.severity} from {share} of calls in {window.en} (of {policy.min_calls} or more): "
        f"{en}",
        f"{policy.severity}：{window.zh}内占比达 {share}（至少 {policy.min_calls} 次调用），{zh}",
    )


def person(code: Code) -> Words:
    """When a person is needed."""
    if not code.trips_after:
        return NOTHING
    times, told = code.trips_after, code.trips_alert
    en = f"after {times} in a row" + ("; pauses the module" if code.pauses else "")
    zh = f"连续 {times} 次" + ("，并暂停模块" if code.pauses else "")
    if told is None:
        return Words(en, zh)
    channels = _channels(told)
    return Words(f"{en}; {told.severity}: {channels.en}", f"{zh}；{told.severity}：{channels.zh}")


def _channels(policy: AlertPolicy) -> Words:
    return Words(
        " + ".join(CHANNELS[channel].en for channel in policy.channels),
        "、".join(CHANNELS[channel].zh for channel in policy.channels),
    )
