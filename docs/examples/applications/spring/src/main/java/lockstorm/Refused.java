package lockstorm;

import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.ResponseStatus;

/** Nothing was done. */
@ResponseStatus(HttpStatus.CONFLICT)
public class Refused extends RuntimeException {
    public Refused(String reason) {
        super(reason);
    }
}
