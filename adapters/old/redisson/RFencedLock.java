package org.redisson.api;

import java.util.concurrent.TimeUnit;

/** Stands in for the interface in releases before 3.19, which have no fenced lock. */
public interface RFencedLock extends RLock {
    Long getToken();

    Long lockAndGetToken();

    Long lockAndGetToken(long lease, TimeUnit unit);

    Long tryLockAndGetToken();

    Long tryLockAndGetToken(long wait, TimeUnit unit);

    Long tryLockAndGetToken(long wait, long lease, TimeUnit unit);
}
