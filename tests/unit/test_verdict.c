#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bisect/verdict.h"

#include "base/banned.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MOST 32

static const struct {
	double good[12], bad[12];
	size_t ngood, nbad;
	enum better better;
	enum calibration_state state;
	int reversed;
} calibrations[] = {
	/* one sample a side says nothing, however far apart */
	{{100}, {1}, 1, 1, BETTER_HIGHER, CALIBRATION_MORE, 0},
	/* clear, both directions, and against the stated direction */
	{{100, 101, 99}, {80, 81, 79}, 3, 3, BETTER_HIGHER, CALIBRATION_DIFFERENT, 0},
	{{80, 81, 79}, {100, 101, 99}, 3, 3, BETTER_LOWER, CALIBRATION_DIFFERENT, 0},
	{{80, 81, 79}, {100, 101, 99}, 3, 3, BETTER_HIGHER, CALIBRATION_SAME, 1},
	{{100, 101, 99}, {80, 81, 79}, 3, 3, BETTER_LOWER, CALIBRATION_SAME, 1},
	/* ranges overlap, or the gap is no larger than the scatter */
	{{100, 101, 99}, {99.5, 98, 97}, 3, 3, BETTER_HIGHER, CALIBRATION_MORE, 0},
	{{100, 110, 120}, {90, 80, 70}, 3, 3, BETTER_HIGHER, CALIBRATION_MORE, 0},
	/* no scatter at all: from the fourth sample on */
	{{5, 5, 5}, {4, 4, 4}, 3, 3, BETTER_HIGHER, CALIBRATION_MORE, 0},
	{{5, 5, 5, 5}, {4, 4, 4, 4}, 4, 4, BETTER_HIGHER, CALIBRATION_DIFFERENT, 0},
	{{5, 5, 5, 5}, {5, 5, 5, 5}, 4, 4, BETTER_HIGHER, CALIBRATION_SAME, 0},
	{{5, 5, 5, 5}, {6, 6, 6, 6}, 4, 4, BETTER_HIGHER, CALIBRATION_SAME, 1},
	/* the last sample allowed */
	{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 12, 12,
		BETTER_HIGHER, CALIBRATION_SAME, 0},
	{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 12, 11,
		BETTER_HIGHER, CALIBRATION_MORE, 0},
	/* one good boot that was slow does not hide the effect for ever */
	{{100, 101, 99, 100, 101, 99, 100, 101, 99, 40}, {60, 61, 59, 60, 61, 59, 60, 61, 59, 60},
		10, 10, BETTER_HIGHER, CALIBRATION_DIFFERENT, 0},
	{{1e308, 1.1e308, 1.05e308}, {1e10, 2e10, 3e10}, 3, 3, BETTER_HIGHER, CALIBRATION_DIFFERENT,
		0},
};

static void test_calibration(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(calibrations); i++) {
		struct calibration c;

		calibration_judge(calibrations[i].good, calibrations[i].ngood, calibrations[i].bad,
			calibrations[i].nbad, calibrations[i].better, 12, &c);
		if (c.state != calibrations[i].state || c.reversed != calibrations[i].reversed)
			fail_msg("case %zu: state %d, reversed %d, p %g", i, c.state, c.reversed,
				c.p);
	}
}

static void test_calibration_numbers(void **state)
{
	const double good[] = {1, 2, 6}, bad[] = {4, 5, 9};
	struct calibration c;

	(void)state;
	calibration_judge(good, 3, bad, 3, BETTER_LOWER, 12, &c);
	assert_true(c.good == 2 && c.bad == 5);
	assert_true(fabs(c.effect - 3) < 1e-9 && c.low < 3 && c.high > 3);
	assert_true(fabs((c.low + c.high) / 2 - 3) < 1e-9);
	assert_true(c.p > 0.01 && c.p < 0.5);
	assert_int_equal(calibration_max(1), 12);
	assert_int_equal(calibration_max(2), 12);
	assert_int_equal(calibration_max(3), 12);
}

/* xorshift64*: the same figures on every machine. */
static uint64_t seed;

static double uniform(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (double)((seed * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	double u = uniform(), v = uniform();

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

struct trial {
	size_t samples;	   /* a commit */
	double effect;	   /* in sd; bad = larger */
	double outliers;   /* chance of 10 sd more */
	double resolution; /* values are rounded to this; 0 = not */
};

/* Samples both ends until it is decided; returns whether they were told apart. */
static int calibrate_once(const struct trial *trial, size_t *used)
{
	size_t n = trial->samples, max = calibration_max(n);
	double good[MOST], bad[MOST];
	struct calibration c;

	for (size_t i = 0; i < max; i++) {
		good[i] = normal() + (uniform() < trial->outliers ? 10 : 0);
		bad[i] = trial->effect + normal() + (uniform() < trial->outliers ? 10 : 0);
		if (trial->resolution > 0) {
			good[i] = round(good[i] / trial->resolution) * trial->resolution;
			bad[i] = round(bad[i] / trial->resolution) * trial->resolution;
		}
	}
	do {
		calibration_judge(good, n, bad, n, BETTER_LOWER, max, &c);
	} while (c.state == CALIBRATION_MORE && n++ < max);
	assert_int_not_equal(c.state, CALIBRATION_MORE);
	*used += n;
	return c.state == CALIBRATION_DIFFERENT;
}

static const struct {
	struct trial trial;
	double least, most; /* how often the ends may be called different */
} simulations[] = {
	{{1, 0, 0, 0}, 0, 0.01},
	{{3, 0, 0, 0}, 0, 0.01},
	{{3, 0, 0.05, 0}, 0, 0.01},
	{{3, 0, 0, 2}, 0, 0.01},
	{{5, 0, 0, 0}, 0, 0.01},
	{{8, 0, 0, 0}, 0, 0.01},
	{{1, 4, 0, 0}, 0.97, 1},
	{{3, 4, 0, 0}, 0.97, 1},
	{{5, 4, 0, 0}, 0.97, 1},
	{{3, 8, 0.05, 0}, 0.93, 1},
	{{3, 3, 0, 0}, 0, 1},
	{{3, 2, 0, 0}, 0, 1},
};

static void test_calibration_rates(void **state)
{
	const int runs = 4000;

	(void)state;
	for (size_t i = 0; i < COUNT(simulations); i++) {
		const struct trial *trial = &simulations[i].trial;
		size_t different = 0, used = 0;
		double rate;

		seed = 20240108 + i;
		for (int k = 0; k < runs; k++)
			different += (size_t)calibrate_once(trial, &used);
		rate = (double)different / runs;
		printf("n %zu, effect %g sd, outliers %g%%, steps of %g: different %.2f%%, "
		       "%.1f samples an end\n",
			trial->samples, trial->effect, trial->outliers * 100, trial->resolution,
			rate * 100, (double)used / runs);
		if (rate < simulations[i].least || rate > simulations[i].most)
			fail_msg("not within %g and %g", simulations[i].least, simulations[i].most);
	}
}

static void test_threshold(void **state)
{
	(void)state;
	assert_true(fabs(threshold_midway(100, 400) - 200) < 1e-9);
	assert_true(fabs(threshold_midway(400, 100) - 200) < 1e-9);
	assert_true(threshold_midway(-4, 10) == 3);
	assert_true(threshold_midway(0, 10) == 5);
	assert_true(isfinite(threshold_midway(1.7e308, 1.6e308)));
	assert_true(isfinite(threshold_midway(-1.7e308, -1.6e308)));
	assert_true(threshold_percent(2000, -10) == 1800);
	assert_true(threshold_percent(2000, 10) == 2200);
	assert_true(threshold_percent(-2000, 10) == -1800);
}

static const struct {
	double threshold, good, bad;
	enum better better;
	const char *words; /* NULL = fine */
} checks[] = {
	{1800, 2000, 1600, BETTER_HIGHER, NULL},
	{2000, 2000, 1600, BETTER_HIGHER, NULL},
	{2200, 2000, 1600, BETTER_HIGHER, "the good end measures 2000, which is below"},
	{1500, 2000, 1600, BETTER_HIGHER, "the bad end measures 1600, which is not below"},
	{1600, 2000, 1600, BETTER_HIGHER, "the bad end"},
	{4, 3, 5, BETTER_LOWER, NULL},
	{2, 3, 5, BETTER_LOWER, "the good end measures 3, which is above"},
	{6, 3, 5, BETTER_LOWER, "the bad end measures 5, which is not above"},
};

static void test_threshold_check(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(checks); i++) {
		struct err err = {0};
		int r = threshold_check(
			checks[i].threshold, checks[i].good, checks[i].bad, checks[i].better, &err);

		if ((r < 0) != (checks[i].words != NULL))
			fail_msg("case %zu: %d %s", i, r, err.msg);
		if (checks[i].words && !strstr(err.msg, checks[i].words))
			fail_msg("case %zu: %s", i, err.msg);
	}
}

/* samples: + is a sample on the good side of the threshold, - one on the bad side, 0 one on it. */
static const struct {
	const char *samples;
	size_t wanted;
	enum judgement expected;
} judgements[] = {
	{"", 3, JUDGED_MORE},
	{"", 0, JUDGED_MORE},
	{"++", 3, JUDGED_MORE},
	{"+++", 3, JUDGED_GOOD},
	{"---", 3, JUDGED_BAD},
	{"000", 3, JUDGED_GOOD},
	{"+", 1, JUDGED_GOOD},
	{"-", 1, JUDGED_BAD},
	{"----", 3, JUDGED_BAD},
	{"++-", 3, JUDGED_MORE},
	{"++-+++++", 3, JUDGED_MORE},
	{"++-++++++", 3, JUDGED_GOOD},
	{"--+------", 3, JUDGED_BAD},
	{"--+-------", 3, JUDGED_BAD},
	/* 2 of 9 can never be a fifth: no use in going on */
	{"++--", 3, JUDGED_UNSURE},
	{"++-+-", 3, JUDGED_UNSURE},
	{"+++++++--", 3, JUDGED_UNSURE},
	/* exactly four fifths */
	{"++++-++++-++++-", 5, JUDGED_GOOD},
	{"++++-++++-+++--", 5, JUDGED_UNSURE},
	{"----+----+----+", 5, JUDGED_BAD},
	{"+-", 1, JUDGED_UNSURE},
};

static void test_commit_judge(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(judgements); i++) {
		size_t n = strlen(judgements[i].samples);
		double higher[32], lower[32];

		for (size_t k = 0; k < n; k++) {
			char c = judgements[i].samples[k];

			higher[k] = 100 + (c == '+') - (c == '-');
			lower[k] = 100 - (c == '+') + (c == '-');
		}
		if (commit_judge(higher, n, judgements[i].wanted, 100, BETTER_HIGHER) !=
			judgements[i].expected)
			fail_msg("case %zu (%s)", i, judgements[i].samples);
		if (commit_judge(lower, n, judgements[i].wanted, 100, BETTER_LOWER) !=
			judgements[i].expected)
			fail_msg("case %zu (%s), lower is better", i, judgements[i].samples);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calibration),
		cmocka_unit_test(test_calibration_numbers),
		cmocka_unit_test(test_calibration_rates),
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_threshold_check),
		cmocka_unit_test(test_commit_judge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
