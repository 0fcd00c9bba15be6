#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <gmime/gmime.h>

#include "daemon/mail.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *list, *error; /* error: a part of the sentence; NULL = a good list */
} address_cases[] = {
	{"bob@example.org", NULL},
	{"Bob <bob@example.org>, carol@localhost", NULL},
	{"\"O'Neil, \\\"Bob\\\" [x]\" <bob@example.org>", NULL},
	{"Jos\xc3\xa9 <jose@example.org>", NULL},
	{"\xd0\x90\xd0\xbd\xd0\xbd\xd0\xb0 <anna@b\xc3\xbc"
	 "cher.example>",
		NULL},
	{"bob@example.org (Bob Q)", NULL},
	{"\"a b\"@example.org", NULL},
	{"bob@[127.0.0.1]", NULL},
	{"a.b+c@x-y.example.org", NULL},
	{"", "no mail address"},
	{" , ", "no mail address"},
	{"bob", "\"bob\" is not a mail address"},
	{"bob@", "\"bob@\" is not a mail address"},
	{"@example.org", "is not a mail address"},
	{"bob example.org", "is not a mail address"},
	{"bob@example..org", "is not a mail address"},
	{"bob@-x.org", "is not a mail address"},
	{"bob@x-.org", "is not a mail address"},
	{"bob@x_y.org", "is not a mail address"},
	{"a@b c@d", "is not a mail address"},
	{"a@b;c@d", "is not a mail address"},
	{"a@b@c", "is not a mail address"},
	{"Bob <bob@example.org", "is not a mail address"},
	{"Bob <<bob@example.org>>", "is not a mail address"},
	{"good@example.org, bad", "\"bad\" is not a mail address"},
	{"team: a@b.org, c@d.org;", "group"},
	{"bob@example.org\nBcc: evil@example.org", "control characters"},
	{"bob@example.org\r\nBcc: evil@example.org", "control characters"},
	{"=?utf-8?q?a=0D=0ABcc?= <bob@example.org>", "control character"},
	{"jos\xc3\xa9@example.org", "only ASCII"},
	{"a123456789b123456789c123456789d123456789e123456789f123456789g1234@example.org",
		"too long"},
};

static void test_addresses(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(address_cases); i++) {
		struct err err = {0};
		int r = mail_check_addresses(address_cases[i].list, &err);

		if (!address_cases[i].error && r == 0)
			continue;
		if (!address_cases[i].error || r == 0 || !strstr(err.msg, address_cases[i].error))
			fail_msg("[%s] gives %d \"%s\"", address_cases[i].list, r, err.msg);
	}
}

static void test_rcpts(void **state)
{
	cleanup(mail_rcpts_release) struct mail_rcpts rcpts = {NULL, 0, 0};
	struct err err;

	(void)state;
	assert_int_equal(mail_rcpts_parse("A <a@x.org>, b@b\xc3\xbc"
					  "cher.example, a@x.org",
				 &rcpts, &err),
		0);
	assert_int_equal(rcpts.n, 2);
	assert_string_equal(rcpts.v[0].addr, "a@x.org");
	assert_string_equal(rcpts.v[1].addr, "b@xn--bcher-kva.example");
	assert_int_equal(rcpts.v[0].state, MAIL_LEFT);
	assert_null(rcpts.v[0].reply);
}

static void test_message_id(void **state)
{
	static const char *const good[] = {"<a@b>", "a@b", " <x.1-2@host.example.org> "};
	static const char *const bad[] = {"", "<>", "abc", "<a b@c>", "<a@b> <c@d>", "a@b\nX: y"};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_int_equal(mail_check_message_id(good[i], NULL), 0);
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_true(mail_check_message_id(bad[i], NULL) < 0);
}

static GMimeMessage *parse_back(const struct buf *text)
{
	GMimeStream *stream = g_mime_stream_mem_new_with_buffer(text->data, text->len);
	GMimeParser *parser = g_mime_parser_new_with_stream(stream);
	GMimeMessage *message = g_mime_parser_construct_message(parser, NULL);

	g_object_unref(parser);
	g_object_unref(stream);
	return message;
}

static char *body_of(GMimeMessage *message, GMimeContentEncoding *ret_encoding)
{
	GMimePart *part = GMIME_PART(g_mime_message_get_mime_part(message));
	GMimeStream *stream = g_mime_stream_mem_new();
	GByteArray *bytes;
	char *text;

	g_mime_data_wrapper_write_to_stream(g_mime_part_get_content(part), stream);
	bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream));
	text = bytes->len ? xstrndup((const char *)bytes->data, bytes->len) : xstrdup("");
	g_object_unref(stream);
	*ret_encoding = g_mime_part_get_content_encoding(part);
	return text;
}

/* Every line ends as asked, and none is longer than RFC 5322 allows. */
static void check_lines(const struct buf *text, enum mail_lines lines)
{
	size_t len = 0;

	for (size_t i = 0; i < text->len; i++) {
		len = text->data[i] == '\n' ? 0 : len + 1;
		assert_true(len <= 999);
		if (text->data[i] == '\n')
			assert_int_equal(i && text->data[i - 1] == '\r', lines == MAIL_CRLF);
		else if (text->data[i] == '\r')
			assert_true(lines == MAIL_CRLF && text->data[i + 1] == '\n');
	}
	assert_int_equal(text->data[text->len - 1], '\n');
}

static const struct {
	const char *body, *back; /* back: NULL = the same */
	GMimeContentEncoding encoding;
} body_cases[] = {
	{"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\told \n+\tnew  \n \n.\n..\n-- \n", NULL,
		GMIME_CONTENT_ENCODING_7BIT},
	{"no line end", "no line end\n", GMIME_CONTENT_ENCODING_7BIT},
	{"dos\r\nlines\r\n", "dos\nlines\n", GMIME_CONTENT_ENCODING_7BIT},
	{"caf\xc3\xa9 = 1 \n\ttab \t\n", NULL, GMIME_CONTENT_ENCODING_QUOTEDPRINTABLE},
	{"10%\r20%\rdone\n", NULL, GMIME_CONTENT_ENCODING_QUOTEDPRINTABLE},
	{"\x1b[31mred\x1b[0m and much more plain text\n", NULL,
		GMIME_CONTENT_ENCODING_QUOTEDPRINTABLE},
	{"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\n\xe6\x97\xa5\n",
		"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\r\n\xe6\x97\xa5\r\n",
		GMIME_CONTENT_ENCODING_BASE64},
	{"", NULL, GMIME_CONTENT_ENCODING_7BIT},
};

/* Compare everything of one message with what GMime's parser finds in its text. */
static void check_body(size_t i, enum mail_lines lines)
{
	struct mail mail = {"k@example.org", "b@example.org", "s", body_cases[i].body, "<1@h>",
		NULL, 1767225600};
	const char *want = body_cases[i].back ? body_cases[i].back : body_cases[i].body;
	cleanup(buf_release) struct buf text = BUF_INIT;
	cleanup(buf_release) struct buf got = BUF_INIT;
	cleanup(free) char *back = NULL;
	GMimeContentEncoding encoding;
	GMimeMessage *message;
	struct err err = {0};

	assert_int_equal(mail_compose(&mail, lines, &text, &err), 0);
	check_lines(&text, lines);
	message = parse_back(&text);
	back = body_of(message, &encoding);
	g_object_unref(message);
	assert_int_equal(encoding, body_cases[i].encoding);
	for (const char *p = back; *p; p++)
		if (encoding == GMIME_CONTENT_ENCODING_BASE64 || p[0] != '\r' || p[1] != '\n')
			buf_addc(&got, *p);
	assert_string_equal(buf_str(&got), want);
}

static void test_bodies(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(body_cases); i++) {
		check_body(i, MAIL_LF);
		check_body(i, MAIL_CRLF);
	}
}

static void test_long_line(void **state)
{
	struct mail mail = {"k@example.org", "b@example.org", "s", NULL, "<1@h>", NULL, 0};
	cleanup(buf_release) struct buf body = BUF_INIT;
	cleanup(buf_release) struct buf text = BUF_INIT;
	cleanup(free) char *back = NULL;
	GMimeContentEncoding encoding;
	GMimeMessage *message;

	(void)state;
	for (int i = 0; i < 999; i++)
		buf_addc(&body, 'x');
	buf_addc(&body, '\n');
	mail.body = buf_str(&body);
	assert_int_equal(mail_compose(&mail, MAIL_LF, &text, NULL), 0);
	check_lines(&text, MAIL_LF);
	message = parse_back(&text);
	back = body_of(message, &encoding);
	g_object_unref(message);
	assert_int_equal(encoding, GMIME_CONTENT_ENCODING_QUOTEDPRINTABLE);
	assert_string_equal(back, mail.body);
}

static const char *const subjects[] = {
	"plain",
	"",
	"[kbisectd] ebizzy-3.12.7-rc2: culprit found: 3d97ea08 (\"x86 idle: Repair large-server "
	"50-watt idle-power regression\"), 28.2% slower",
	"d\xc3\xa9j\xc3\xa0 vu",
	"looks =?utf-8?q?encoded?= already",
	"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6"
	"\x9c"
	"\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e",
};

static const char *const names[] = {
	"Bob",
	"O'Neil, \"Bob\" <x@y>",
	"Jos\xc3\xa9",
	"=?utf-8?q?x?=",
	"\xd0\x9a\xd0\xbe\xd0\xbd\xd1\x81\xd1\x82\xd0\xb0\xd0\xbd\xd1\x82\xd0\xb8\xd0\xbd \xd0\x9a"
	"\xd0\xbe\xd0\xbd\xd1\x81\xd1\x82\xd0\xb0\xd0\xbd\xd1\x82\xd0\xb8\xd0\xbd\xd0\xbe\xd0\xbf"
	"\xd0\xbe\xd0\xbb\xd1\x8c\xd1\x81\xd0\xba\xd0\xb8\xd0\xb9",
};

/* No encoded word may be longer than 75 characters (RFC 2047 2). */
static void check_words(const char *text)
{
	const char *end;

	while ((text = strstr(text, "=?utf-8?")) != NULL) {
		end = strstr(text, "?=");
		assert_non_null(end);
		assert_true(end + 2 - text <= 75);
		text = end;
	}
}

static void check_headers(const char *subject, const char *name)
{
	cleanup(buf_release) struct buf text = BUF_INIT;
	cleanup(buf_release) struct buf quoted = BUF_INIT;
	struct mail mail = {NULL, NULL, subject, "x\n", "<7.culprit@host.example.org>",
		"parent@example.org", 1767225600};
	cleanup(free) char *list = NULL;
	struct err err = {0};
	GMimeMessage *message;
	GDateTime *date;

	for (const char *p = name; *p; p++)
		buf_addf(&quoted, *p == '"' ? "\\%c" : "%c", *p);
	list = xasprintf("\"%s\" <k@b\xc3\xbc"
			 "cher.example>",
		buf_str(&quoted));
	mail.from = mail.to = list;
	if (mail_compose(&mail, MAIL_CRLF, &text, &err) < 0)
		fail_msg("%s: %s", list, err.msg);
	check_words(buf_str(&text));
	message = parse_back(&text);
	assert_string_equal(g_mime_message_get_subject(message), subject);
	assert_string_equal(g_mime_message_get_message_id(message), "7.culprit@host.example.org");
	assert_string_equal(g_mime_object_get_header(GMIME_OBJECT(message), "In-Reply-To"),
		"<parent@example.org>");
	assert_string_equal(g_mime_object_get_header(GMIME_OBJECT(message), "References"),
		"<parent@example.org>");
	assert_string_equal(g_mime_object_get_header(GMIME_OBJECT(message), "Auto-Submitted"),
		"auto-generated");
	for (int type = GMIME_ADDRESS_TYPE_FROM; type <= GMIME_ADDRESS_TYPE_TO; type++) {
		InternetAddressList *found = g_mime_message_get_addresses(message, type);
		InternetAddress *ia;

		if (type != GMIME_ADDRESS_TYPE_FROM && type != GMIME_ADDRESS_TYPE_TO)
			continue;
		assert_int_equal(internet_address_list_length(found), 1);
		ia = internet_address_list_get_address(found, 0);
		if (!strstr(name, "=?")) /* the parser of the list decodes what looks encoded */
			assert_string_equal(internet_address_get_name(ia), name);
		assert_string_equal(
			internet_address_mailbox_get_idn_addr(INTERNET_ADDRESS_MAILBOX(ia)),
			"k@xn--bcher-kva.example");
	}
	date = g_mime_message_get_date(message);
	assert_int_equal(g_date_time_to_unix(date), 1767225600);
	g_object_unref(message);
}

static void test_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(subjects); i++)
		check_headers(subjects[i], "Bob");
	for (size_t i = 0; i < COUNT(names); i++)
		check_headers("s", names[i]);
}

static void test_injection(void **state)
{
	struct mail mail = {"k@example.org", "b@example.org", "a\r\nBcc: evil@example.org\n\nbody",
		"x\n", "<1@h>", NULL, 0};
	cleanup(buf_release) struct buf text = BUF_INIT;
	struct err err = {0};
	GMimeMessage *message;

	(void)state;
	assert_int_equal(mail_compose(&mail, MAIL_CRLF, &text, NULL), 0);
	message = parse_back(&text);
	assert_null(g_mime_object_get_header(GMIME_OBJECT(message), "Bcc"));
	assert_string_equal(g_mime_message_get_subject(message), "a  Bcc: evil@example.org  body");
	g_object_unref(message);
	mail.in_reply_to = "<a@b>\nBcc: evil@example.org";
	assert_int_equal(mail_compose(&mail, MAIL_CRLF, &text, &err), -EINVAL);
	mail.in_reply_to = NULL;
	mail.message_id = "a@b\r\nBcc: evil@example.org";
	assert_int_equal(mail_compose(&mail, MAIL_CRLF, &text, &err), -EINVAL);
	mail.message_id = "a@b";
	mail.from = "a@b.org, c@d.org";
	assert_int_equal(mail_compose(&mail, MAIL_CRLF, &text, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_rcpts),
		cmocka_unit_test(test_message_id),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_injection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
