"""The chapters of the book, in order. Each has NAME, SHORT, TITLE, INTRODUCTION and SECTIONS."""
from chapters import amb, async_timed, central, clicks, dynamic, gossip, servers

CHAPTERS = (central, amb, async_timed, dynamic, servers, clicks, gossip)
