#ifndef BISECT_VERDICT_H
#define BISECT_VERDICT_H

/*
 * What the numbers mean: do the endpoints differ at all, where does good end, and on which side is
 * a commit? Pure functions. A sample is one number from one fresh boot, finite, in the metric's own
 * unit; its direction (is more better?) is given beside it.
 */

#include <stddef.h>

#include "base/err.h"

enum better { BETTER_HIGHER, BETTER_LOWER };

enum calibration_state {
	CALIBRATION_MORE,      /* cannot be told yet: sample both endpoints again */
	CALIBRATION_DIFFERENT, /* bad is worse than good by more than the noise */
	CALIBRATION_SAME,      /* it is not: nothing to bisect */
};

struct calibration {
	enum calibration_state state;
	double good, bad; /* medians */
	double effect;	  /* mean of bad - mean of good, in the metric's unit */
	double low, high; /* 95% confidence interval of the effect; infinite for one sample */
	double p;	  /* one-sided, for bad being worse */
	int reversed;	  /* with CALIBRATION_SAME: bad is better than good, beyond the noise */
};

/* How many samples an endpoint gets at most for a job that wants n of each commit. */
size_t calibration_max(size_t n);

/*
 * Different: the ranges do not overlap and Welch's one-sided p is below 0.005. From 10 samples on,
 * a tenth of all pairs may be the wrong way round when p is below 0.0005: one outlier must not hide
 * a clear effect. Same: max_samples of each, and not different. Samples without any scatter count
 * from the fourth on, as three equal ones are no rarity where a number is printed with few digits.
 * Both counts must be at least 1.
 */
void calibration_judge(const double *good, size_t ngood, const double *bad, size_t nbad,
	enum better better, size_t max_samples, struct calibration *ret);

/*
 * A boundary between the medians of the two endpoints: their geometric mean when both are positive,
 * because the scatter of times and rates grows with their level, so that equal ratios are equal
 * chances of misjudging; else their arithmetic mean.
 */
double threshold_midway(double good, double bad);

/* So many per cent (signed) away from good: -10 of 2000 is 1800. */
double threshold_percent(double good, double percent);

/* Is the good endpoint on the good side of it and the bad one on the bad side? A sentence if not.
 */
int threshold_check(double threshold, double good, double bad, enum better better, struct err *err);

enum judgement {
	JUDGED_GOOD,
	JUDGED_BAD,
	JUDGED_MORE,   /* cannot be told yet: take another sample */
	JUDGED_UNSURE, /* more samples would not tell either */
};

/*
 * A commit by its samples, at least `wanted` of them. All on one side of the threshold: that side
 * (on it is good). On both: up to three times as many are taken, and then the side of the median
 * counts if at least 80% agree with it. Unsure is answered as soon as that cannot be reached.
 */
enum judgement commit_judge(
	const double *samples, size_t n, size_t wanted, double threshold, enum better better);

#endif
