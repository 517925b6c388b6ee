"""`storyend push`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from .options import AsJson

if TYPE_CHECKING:
    from hf_storyend.hub import PushPlan


def push(
    model: Annotated[Path, typer.Argument(help="Directory of a model: what training or `save_pretrained` wrote.")],
    repo_id: Annotated[str, typer.Option(help="Where to: `owner/name`, or `name` for one of your own.")],
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    revision: Annotated[str, typer.Option(help="Branch; made from `main` if it is not there.")] = "main",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go up, and do nothing.")] = False,
    allow_changed_code: Annotated[
        bool, typer.Option("--allow-changed-code", help="Push code other than the installed package's.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """
    Push a model to the Hugging Face Hub: code, weights, tokenizer, knowledge and card in one commit.

    The token is that of `hf auth login` or HF_TOKEN. Where all is there already, nothing happens.

    Example: `storyend push my_model --repo-id me/ie-msa-ca --private --dry-run`
    """
    from hf_storyend import hub

    if dry_run:
        plan = hub.plan_push(model, repo_id, private=private, branch=revision, allow_changed_code=allow_changed_code)
        address, sentence = None, "A dry run: nothing was pushed."
    else:
        done = hub.push(model, repo_id, private=private, branch=revision, allow_changed_code=allow_changed_code)
        plan, address = done.plan, done.commit_url
        sentence = address or "Nothing to do: all is there already."
    if as_json:
        typer.echo(json.dumps({**_names(plan), "commit_url": address}, indent=1))
        return
    _print_plan(plan)
    Console().print(escape(sentence), soft_wrap=True)


def _names(plan: PushPlan) -> dict[str, Any]:
    kinds = {"new": plan.new, "changed": plan.changed, "removed": plan.removed, "unchanged": plan.unchanged}
    return {
        "repo_id": plan.repo_id,
        "branch": plan.branch,
        "has_repo": plan.has_repo,
        **{kind: list(names) for kind, names in kinds.items()},
    }


def _print_plan(plan: PushPlan) -> None:
    console = Console(highlight=False)
    console.print(escape(f"{plan.repo_id} at {plan.branch}{'' if plan.has_repo else ' (new)'}"))
    for word, names in (("new", plan.new), ("changed", plan.changed), ("removed", plan.removed)):
        for name in names:
            console.print(escape(f"  {word:8} {name}"), soft_wrap=True)
    if plan.unchanged:
        console.print(f"  {len(plan.unchanged)} files are there already")
