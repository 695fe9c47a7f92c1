"""The backend's own login: a form, and a session in a signed cookie."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from flask import Blueprint, abort, redirect, request, session
from flask.typing import ResponseReturnValue
from werkzeug.security import check_password_hash

from examples.legacy_backend import tables

P = ParamSpec("P")

accounts = Blueprint("accounts", __name__)

FORM = """<form method="post"><input name="user"><input name="password" type="password">
<button>Sign in</button></form>"""


@accounts.route("/login", methods=["GET", "POST"])
def log_in() -> ResponseReturnValue:
    if request.method == "GET":
        return FORM
    user = request.form["user"]
    if not check_password_hash(tables.password_of(user) or "", request.form["password"]):
        abort(403)
    session["user"] = user
    return redirect("/hr/gradings")


def user() -> str | None:
    """Who is signed in."""
    return session.get("user")


def signed_in(view: Callable[P, ResponseReturnValue]) -> Callable[P, ResponseReturnValue]:
    """For people who are signed in; others are sent to the form."""

    @wraps(view)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> ResponseReturnValue:
        return view(*args, **kwargs) if user() else redirect("/hr/login")

    return guarded
