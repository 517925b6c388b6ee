"""Friendly errors: what `huggingface_hub` raises, in one sentence that says what to do, and without the token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError, HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled


class HubError(OSError):
    """
    The Hub could not be reached or refused a request.

    Args:
        message: One sentence.
        is_transient: Whether the same request may succeed later.
        is_unreachable: Whether there was no answer at all.
    """

    def __init__(self, message: str, is_transient: bool = False, is_unreachable: bool = False):
        super().__init__(message)
        self.is_transient = is_transient
        self.is_unreachable = is_unreachable


@contextmanager
def friendly_errors(api: HfApi, repo_id: str) -> Iterator[None]:
    """
    Turn errors of `huggingface_hub` into a `HubError`.

    The original is not chained: its request carries the token, which debuggers and error reporters would show.
    """
    try:
        yield
    except (HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        raise _translate(error, api, repo_id) from None
    except RuntimeError as error:
        # huggingface_hub wraps the error so where it uploads several files at once.
        if not isinstance(error.__cause__, (HTTPError, OSError)):
            raise
        raise _translate(error.__cause__, api, repo_id) from None


def _translate(error: BaseException, api: HfApi, repo_id: str) -> HubError:
    if isinstance(error, OfflineModeIsEnabled):
        message = f"`{repo_id}` can't be reached: the environment sets HF_HUB_OFFLINE; unset it."
        return HubError(message, is_unreachable=True)
    if not isinstance(error, HfHubHTTPError):
        name = type(error).__name__
        return HubError(
            f"{api.endpoint} can't be reached ({name}): check the network and HF_ENDPOINT, then try again.",
            is_transient=True,
            is_unreachable=True,
        )
    status = error.response.status_code
    if status >= 500 or status in (409, 412, 429):
        return HubError(
            f"{api.endpoint} answered with error {status}; `{repo_id}` is unchanged. Try again later.",
            is_transient=True,
        )
    return HubError(_refusal(status, api, repo_id, error.server_message))


def _refusal(status: int, api: HfApi, repo_id: str, server_message: str | None) -> str:
    if status == 401:
        return f"{api.endpoint} does not accept the token: log in again with `hf auth login`, or correct HF_TOKEN."
    if status == 403:
        return (
            f"The token may not write to `{repo_id}`: give a repository of your own or of your organisation, "
            "or a token with write access."
        )
    if status == 404:
        return f"{api.endpoint} has no `{repo_id}`, or the token may not see it, or it has no such revision."
    reason = _without_token(server_message or "no reason given", api)
    return f"{api.endpoint} refused `{repo_id}` with error {status}: {reason}"


def _without_token(text: str, api: HfApi) -> str:
    token = api.token if isinstance(api.token, str) else get_token()
    return text.replace(token, "<token>") if token else text
