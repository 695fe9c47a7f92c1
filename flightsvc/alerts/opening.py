"""The channels that the settings name."""

from __future__ import annotations

from collections.abc import Iterator

from flightsvc.alerts.channels import Channel, WebhookChannel, WeComChannel
from flightsvc.alerts.mail import MailChannel
from flightsvc.settings import Settings
from flightsvc.settings.alerting import parse_mail_server


def open_channels(settings: Settings) -> Iterator[Channel]:
    """Every channel that has an address; none is connected before an alert comes."""
    if settings.alert_webhook_url:
        yield WebhookChannel(settings.alert_webhook_url)
    if settings.alert_wecom_url:
        yield WeComChannel(settings.alert_wecom_url)
    if settings.alert_smtp_url:
        server = parse_mail_server(settings.alert_smtp_url)
        yield MailChannel(server, settings.alert_email_from, settings.alert_email_to)
