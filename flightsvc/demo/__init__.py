"""``flightsvc demo``: the main job as a picture.

It starts the service as ``make run`` does, with a model server behind it that counts its calls,
asks many evaluations at once, and prints what became of them. ``samples`` is what is asked,
``load`` asks, ``service`` runs gunicorn, ``tally`` counts and judges, ``report`` prints.
"""
