<?php
// outer → inner, where the time goes. Argument: CPU milliseconds.
function inner(int $turns): int
{
    $x = 1;
    for ($i = 0; $i < $turns; $i++) {
        $x = ($x * 31 + $i) % 1048573;
    }
    return $x;
}

function cpu(): float
{
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_utime.tv_usec'] / 1e6;
}

function outer(float $end): int
{
    $sum = 0;
    while (cpu() < $end) {
        $sum += inner(200000);
    }
    return $sum;
}

outer((float) $argv[1] / 1000);
echo "0 0\n";
