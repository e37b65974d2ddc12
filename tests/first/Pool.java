// SPDX-License-Identifier: MIT
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Takes a direct buffer for each visit, and keeps every fourth, for so many seconds. */
public class Pool {
    static final List<ByteBuffer> kept = new ArrayList<>();
    static ByteBuffer last;

    static ByteBuffer take(int visit) {
        return ByteBuffer.allocateDirect(20000 + visit % 7);
    }

    static void serve(int visit) {
        last = take(visit);
        if (visit % 4 == 0)
            kept.add(last);
    }

    public static void main(String[] words) throws Exception {
        long end = System.currentTimeMillis() + 1000 * Long.parseLong(words[0]);
        for (int visit = 0; System.currentTimeMillis() < end; visit++) {
            serve(visit);
            if (visit % 20 == 0)
                Thread.sleep(10);
        }
        System.out.println(kept.size());
    }
}
