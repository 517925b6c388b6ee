"""Models on the Hugging Face Hub: pushing them, their cards, and whether their code is that of this package."""

from .card import render_card, render_card_of
from .push import Push, PushPlan, plan_push, push
from .verify_code import CodeCheck, HubRefusedError, check_code

__all__ = [
    "CodeCheck",
    "HubRefusedError",
    "Push",
    "PushPlan",
    "check_code",
    "plan_push",
    "push",
    "render_card",
    "render_card_of",
]
