/// A certificate for localhost that signs itself, and its private key; for tests alone.
package enum LocalhostCertificate {
    package static let pem = """
        -----BEGIN CERTIFICATE-----
        MIIBmjCCAUGgAwIBAgIUVB0Iy6yFdTS2sh8JqwFuS3hE68UwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzEyMjM1N1oYDzIxMjYxMDMw
        MTIyMzU3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAASKQ5LkciEiUx1+Jm1XpKkMdSD15sFLxmLOutBeO1JCLyfi5ApGGw4S
        ek+Wp0rU1LZYeu6RyYGz7qTxeAPN8+lfo28wbTAdBgNVHQ4EFgQU9hUx8jiSabY1
        HRcBwIiM2TT/5WUwHwYDVR0jBBgwFoAU9hUx8jiSabY1HRcBwIiM2TT/5WUwDwYD
        VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
        zj0EAwIDRwAwRAIgKPLe2QF1ILdCL587Hw0YnZcUH9f4NqIm/QbLHOYS4qECIDds
        5p+cIZ5eBeHVq5I30/Drz8aO7668xqxpLiwXGDYH
        -----END CERTIFICATE-----

        """

    package static let privateKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgN0ppmNF72Kf/8umv
        yMoRmk5c4693Sutiv3Iq77L9bsGhRANCAASKQ5LkciEiUx1+Jm1XpKkMdSD15sFL
        xmLOutBeO1JCLyfi5ApGGw4Sek+Wp0rU1LZYeu6RyYGz7qTxeAPN8+lf
        -----END PRIVATE KEY-----

        """
}
