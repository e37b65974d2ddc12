/* SPDX-License-Identifier: MIT */
#include "cli/session/session_talk.h"

#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "session/directory/directory.h"

static void on_message(void *cookie, enum controller_word word, const char *text)
{
	(void)cookie;
	if (word == CONTROLLER_NOTE || word == CONTROLLER_WARNING)
		cli_say("%s", text);
}

const struct controller_listener session_listener = {on_message, NULL};

int session_connect_to(const char *name)
{
	struct diag diag = {""};
	int socket = session_connect(name, &diag);
	return socket >= 0 ? socket : (cli_fail("%s", diag.text), -1);
}

int session_ask(int socket, const struct control_message *message)
{
	struct diag diag = {""};
	return controller_ask(socket, message, &session_listener, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
}

int session_answer(int socket, const struct control_message *message, struct control_message *answer, struct diag *diag)
{
	return controller_answer(socket, message, answer, NULL, diag);
}

int session_query(int socket, bool with_threads, struct controller_state *state)
{
	struct diag diag = {""};
	return controller_query(socket, with_threads, state, &session_listener, &diag) ? cli_fail("%s", diag.text)
										       : CLI_OK;
}

int session_take_name(int count, char **arguments, const char *command)
{
	if (count < 2 || arguments[1][0] == '-')
		return cli_fail("%s: the session's name is missing; see xheap help %s", command, command);
	if (!session_name_is_possible(arguments[1]) ||
	    (!strcmp(command, "start") && !session_name_is_good(arguments[1])))
		return cli_fail(
			"%s: \"%s\" cannot be a session's name: up to 64 bytes without /, not beginning with . or -",
			command, arguments[1]);
	return CLI_OK;
}

static int take_word(void *context, char *word)
{
	struct session_words *words = context;
	if (words->name)
		return cli_fail("%s: not expected here: %s is the session's name", word, words->name);
	words->name = word;
	return CLI_OK;
}

int session_take_words(const struct option_grammar *grammar, int count, char **arguments, struct session_words *words)
{
	char **rest;
	int status = options_parse(grammar, count, arguments, words, take_word, &rest);
	char *named[] = {arguments[0], words->name};
	return status == CLI_OK ? session_take_name(words->name ? 2 : 1, named, grammar->command) : status;
}

int session_refuse_words(char **words, const char *command)
{
	return *words ? cli_fail("%s: %s: not expected here; see xheap help %s", command, *words, command) : CLI_OK;
}
