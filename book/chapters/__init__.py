"""The chapters of the book, in order. Each has NAME, SHORT, TITLE, INTRODUCTION and SECTIONS."""
from chapters import amb, central, servers

CHAPTERS = (central, amb, servers)
