<?php
// Two functions whose shares of the time are known, since the clock says how long each ran: `straight` without a loop
// or a call until its end, and `loops`. So it is seen who counts rightly where both profilers disagree.
//
// php known.php WARM_UP_S SECONDS OUT INTERVAL_US

[, $warmUp, $seconds, $out, $interval] = $argv;
const CALLS = 2000;

function straight(array $a, string $s): int
{
    $x = 0;
    $x += $a[0] * 3 + $a[1]; $y = $s . $x; $x += $a[2] ^ $a[3]; $z = [$x, $y, $s]; $x += $a[4] % 7; $y = $y . $s . $x;
    $z = [$z, $x, $y]; $x += $a[5] * 5; $y = "$y-$x-$s"; $z = [$z, $y]; $x += $a[6]; $x += $a[7] * $a[8]; $y = "$y-$x";
    $x += $a[0] * 3 + $a[1]; $y = $s . $x; $x += $a[2] ^ $a[3]; $z = [$x, $y, $s]; $x += $a[4] % 7; $y = $y . $s . $x;
    $z = [$z, $x, $y]; $x += $a[5] * 5; $y = "$y-$x-$s"; $z = [$z, $y]; $x += $a[6]; $x += $a[7] * $a[8]; $y = "$y-$x";
    // Whatever is left at the end is freed in the name of the caller.
    unset($y, $z);
    return light($x);
}

function light(int $x): int
{
    return $x ^ 1;
}

function loops(int $count): int
{
    for ($i = $x = 0; $i < $count; $i++) {
        $x = $x * 3 + $i & 0xffff;
    }
    return $x;
}

// Percent of the time in `straight` without what it calls.
function work(float $seconds): float
{
    [$a, $straight, $all] = [range(1, 9), 0, 0];
    $end = microtime(true) + $seconds;
    while (microtime(true) < $end) {
        $begin = hrtime(true);
        for ($i = 0; $i < CALLS; $i++) {
            straight($a, 'text');
        }
        $called = hrtime(true);
        // The same without what `straight` does itself.
        for ($i = 0; $i < CALLS; $i++) {
            light($i);
        }
        $lights = hrtime(true);
        loops(60000);
        $straight += $called - $begin - ($lights - $called);
        $all += hrtime(true) - $begin;
    }
    return 100 * $straight / $all;
}

work($warmUp);
$profiler = new ExcimerProfiler();
$profiler->setEventType(EXCIMER_CPU);
$profiler->setPeriod($interval / 1e6);
$profiler->setMaxDepth(0);
$profiler->start();
fwrite(STDOUT, "begun\n");
$truth = work($seconds);
$profiler->stop();
fwrite(STDOUT, "ended\n");
file_put_contents($out, $profiler->getLog()->formatCollapsed());
fwrite(STDOUT, "truth straight $truth\n");
// What was sampled last has its names as long as the process lives.
stream_get_contents(STDIN);
