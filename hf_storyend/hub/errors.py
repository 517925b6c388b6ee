"""What the Hub or the network refused, in a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError, HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled


class HubRefusedError(OSError):
    """The Hub could not be reached or did not do what it was asked for; `is_passing` if trying again may help."""

    def __init__(self, message: str, is_passing: bool = False):
        super().__init__(message)
        self.is_passing = is_passing


@contextmanager
def in_a_sentence(api: HfApi, repo_id: str) -> Iterator[None]:
    """
    Turn the errors of `huggingface_hub` into one sentence. The original error is not chained: its request carries the
    token, which debuggers and error reporters would print.
    """
    try:
        yield
    except (HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        raise _refusal(error, api, repo_id) from None
    except RuntimeError as error:
        # So wrapped by huggingface_hub where several files are uploaded at once.
        if not isinstance(error.__cause__, (HTTPError, OSError)):
            raise
        raise _refusal(error.__cause__, api, repo_id) from None


def _refusal(error: BaseException, api: HfApi, repo_id: str) -> HubRefusedError:
    if isinstance(error, OfflineModeIsEnabled):
        return HubRefusedError(f"`{repo_id}` can't be reached: the environment sets HF_HUB_OFFLINE; unset it.")
    if not isinstance(error, HfHubHTTPError):
        name = type(error).__name__
        return HubRefusedError(
            f"{api.endpoint} can't be reached ({name}): check the network and HF_ENDPOINT, then try again.",
            is_passing=True,
        )
    status = error.response.status_code
    if status >= 500 or status in (409, 412, 429):
        return HubRefusedError(
            f"{api.endpoint} answered with error {status}; `{repo_id}` is as it was. Try again later.", is_passing=True
        )
    return HubRefusedError(_refused_for_good(status, api, repo_id, error.server_message))


def _refused_for_good(status: int, api: HfApi, repo_id: str, server_message: str | None) -> str:
    if status == 401:
        return f"{api.endpoint} does not accept the token: log in anew with `hf auth login`, or mend HF_TOKEN."
    if status == 403:
        return (
            f"The token may not write to `{repo_id}`: give a repository of your own or of your organisation, "
            "or a token with the right to write."
        )
    if status == 404:
        return f"{api.endpoint} has no `{repo_id}`, or the token may not see it, or it has no such revision."
    told = _without_token(server_message or "no reason given", api)
    return f"{api.endpoint} refused `{repo_id}` with error {status}: {told}"


def _without_token(text: str, api: HfApi) -> str:
    token = api.token if isinstance(api.token, str) else get_token()
    return text.replace(token, "<token>") if token else text
