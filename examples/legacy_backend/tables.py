"""The backend's own tables, in a SQLite file; one connection a request."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from flask import Flask, current_app, g
from werkzeug.security import generate_password_hash

SCHEMA = """
CREATE TABLE IF NOT EXISTS users (name TEXT PRIMARY KEY, password TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS questions (number INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS gradings (
    user TEXT, number INTEGER, grading TEXT NOT NULL, PRIMARY KEY (user, number)
);
"""
QUESTIONS = [(1, "What does an index cost?"), (2, "What is a deadlock?")]


def init_app(app: Flask) -> None:
    """Make what is missing, with two people to try it."""
    app.teardown_appcontext(_disconnect)
    with app.app_context(), connection() as database:
        database.executescript(SCHEMA)
        for name in ("ada", "grace"):
            hashed = generate_password_hash(f"{name}-secret")
            database.execute("INSERT OR IGNORE INTO users VALUES (?, ?)", (name, hashed))
        database.executemany("INSERT OR IGNORE INTO questions VALUES (?, ?)", QUESTIONS)


def connection() -> sqlite3.Connection:
    """This request's."""
    if "database" not in g:
        g.database = sqlite3.connect(current_app.config["HR_DATABASE"])
    found: sqlite3.Connection = g.database
    return found


def password_of(user: str) -> str | None:
    """As it is stored; None if there is no such user."""
    return _one("SELECT password FROM users WHERE name = ?", user)


def question(number: int) -> str | None:
    """Its text; None if there is none."""
    return _one("SELECT text FROM questions WHERE number = ?", number)


def keep(user: str, number: int, grading: dict[str, Any]) -> None:
    """Store it; a second one takes the place of the first."""
    row = (user, number, json.dumps(grading))
    with connection() as database:
        database.execute("INSERT OR REPLACE INTO gradings VALUES (?, ?, ?)", row)


def gradings(user: str) -> dict[int, Any]:
    """A user's, by question."""
    rows = connection().execute("SELECT number, grading FROM gradings WHERE user = ?", (user,))
    return {number: json.loads(grading) for number, grading in rows}


def _one(query: str, value: str | int) -> str | None:
    row = connection().execute(query, (value,)).fetchone()
    return None if row is None else str(row[0])


def _disconnect(_error: BaseException | None) -> None:
    database = g.pop("database", None)
    if database is not None:
        database.close()
