#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bisect/stats.h"

#include "base/banned.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void near(double found, double expected)
{
	double slack = 1e-9 * fmax(1, fabs(expected));

	if (found == expected || fabs(found - expected) <= slack)
		return;
	fail_msg("found %.12g, expected %.12g", found, expected);
}

static const struct {
	double x[6];
	size_t n;
	double median, mean, sd, min, max;
} cases[] = {
	{{7}, 1, 7, 7, 0, 7, 7},
	{{3, 1}, 2, 2, 2, 1.4142135623730951, 1, 3},
	{{5, 1, 3}, 3, 3, 3, 2, 1, 5},
	{{2, 4, 4, 4, 5, 5}, 6, 4, 4, 1.0954451150103321, 2, 5},
	{{0.1, 0.1, 0.1}, 3, 0.1, 0.1, 0, 0.1, 0.1},
	{{-4, -8}, 2, -6, -6, 2.8284271247461903, -8, -4},
	/* a large common level, and values whose squares and sums overflow a double */
	{{1e15 + 1, 1e15 + 2, 1e15 + 3}, 3, 1e15 + 2, 1e15 + 2, 1, 1e15 + 1, 1e15 + 3},
	{{1.5e308, 1.7e308}, 2, 1.6e308, 1.6e308, 1.4142135623730951e307, 1.5e308, 1.7e308},
};

static void test_summary(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		near(stats_median(cases[i].x, cases[i].n), cases[i].median);
		near(stats_mean(cases[i].x, cases[i].n), cases[i].mean);
		near(stats_sd(cases[i].x, cases[i].n), cases[i].sd);
		near(stats_min(cases[i].x, cases[i].n), cases[i].min);
		near(stats_max(cases[i].x, cases[i].n), cases[i].max);
	}
}

/* Worked by hand: means 2 and 5, variances of the means 1/3 and 1/3, df 4, t = 3 / sqrt(2/3). */
static void test_welch_by_hand(void **state)
{
	const double a[] = {1, 2, 3}, b[] = {4, 5, 6};
	struct stats_welch w;

	(void)state;
	stats_welch(a, 3, b, 3, 0.95, &w);
	near(w.difference, 3);
	near(w.t, 3.6742346141747673);
	near(w.df, 4);
	/* Student's t with 4 degrees of freedom has a closed form. */
	double s = w.t / sqrt(w.t * w.t + 4);
	near(w.p_greater, 0.5 - 0.75 * (s - s * s * s / 3));
	near(w.p_less, 1 - w.p_greater);
	/* t(0.975, 4) = 2.7764451051977987 in every table */
	near(w.low, 3 - 2.7764451051977987 * sqrt(2 / 3.0));
	near(w.high, 3 + 2.7764451051977987 * sqrt(2 / 3.0));

	stats_welch(b, 3, a, 3, 0.95, &w);
	near(w.difference, -3);
	near(w.p_less, 0.5 - 0.75 * (s - s * s * s / 3));
}

static void test_welch_unequal(void **state)
{
	/* variances of the means 1 and 9: df = 100 / (1/1 + 81/1) with two samples each */
	const double a[] = {9, 11}, b[] = {17, 23};
	struct stats_welch w;

	(void)state;
	stats_welch(a, 2, b, 2, 0.95, &w);
	near(w.t, sqrt(10));
	near(w.df, 100.0 / 82);
}

static void test_welch_without_scatter(void **state)
{
	const double one[] = {1, 1, 1}, two[] = {2, 2, 2};
	struct stats_welch w;

	(void)state;
	stats_welch(one, 1, two, 3, 0.95, &w);
	near(w.df, 0);
	assert_true(isinf(w.low) && isinf(w.high) && w.low < 0 && w.high > 0);
	near(w.p_less, 1);
	near(w.p_greater, 1);

	stats_welch(one, 3, two, 3, 0.95, &w);
	assert_true(isinf(w.t) && w.t > 0);
	near(w.low, 1);
	near(w.high, 1);
	near(w.p_greater, 0);
	near(w.p_less, 1);

	stats_welch(one, 3, one, 3, 0.95, &w);
	near(w.t, 0);
	near(w.p_greater, 1);
	near(w.p_less, 1);
}

static void test_welch_extremes(void **state)
{
	const double a[] = {-1.7e308, -1.6e308, -1.5e308}, b[] = {1e-300, 2e-300, 3e-300};
	struct stats_welch w;

	(void)state;
	stats_welch(a, 3, b, 3, 0.95, &w);
	assert_true(isfinite(w.difference) && isfinite(w.t) && isfinite(w.df));
	assert_true(w.p_greater < 0.01 && w.p_less > 0.99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_summary),
		cmocka_unit_test(test_welch_by_hand),
		cmocka_unit_test(test_welch_unequal),
		cmocka_unit_test(test_welch_without_scatter),
		cmocka_unit_test(test_welch_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
