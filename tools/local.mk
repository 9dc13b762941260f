# Programs for users, installed.
