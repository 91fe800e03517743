/// A certificate and its private key, for tests alone.
enum Certificate {
    static let document = "{\"one\":\"" + pem.replacing("\n", with: "\\n") + "\"}"

    static let pem = """
        -----BEGIN CERTIFICATE-----
        MIIDATCCAemgAwIBAgIUbtWNhNjTWNmozFxPkuP3GnvzceYwDQYJKoZIhvcNAQEL
        BQAwDzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjMxMTQzNDFaGA8yMTI2MTAzMDEx
        NDM0MVowDzENMAsGA1UEAwwEdGVzdDCCASIwDQYJKoZIhvcNAQEBBQADggEPADCC
        AQoCggEBAKlmEnw4NspAp9+0KKFqaokFCFUD6rPFVigijJ1WTEPHDxEYL6AvPghr
        TY0NRIzd4+9QFvRCSl5jCvs/w2YYEVPIsRwbprTgBJ6f+kx/hz4RFMok33k6ED5p
        ZTC3hW8Aa61aj4w2MbdhDzV6NqRn5pYoUWNasJJ/Z8eKMUCa0SD3R8qxOSaWhkoc
        imc4Jxa049eNNwDuCFodAcsBmsgYo+w1t3OzTr5ZoxQCtw6TVexykW4HFUVEvh9R
        C1vNh4zwe5O5bsoiLIFfT3XumYXQMfrcbEMriwhkw/ircRcZ2jQju/Us7r0pB+Ik
        IpJ1FsxvJTDrLj48hnuJvrtJth3bYb0CAwEAAaNTMFEwHQYDVR0OBBYEFMBQKhhT
        7v58uPMaEWOrzPDok8hdMB8GA1UdIwQYMBaAFMBQKhhT7v58uPMaEWOrzPDok8hd
        MA8GA1UdEwEB/wQFMAMBAf8wDQYJKoZIhvcNAQELBQADggEBAFwqTpKUug1x2hpW
        WtJgBgAd6KJcVJL39bgEmmw+JMNflm9FvqWVT+sunOpRObem1EzoEhesGuuftTYV
        VpEnymq46wec1ObuA5icwTlzht9RSP+tMoAeK04Qwd68u767uVfnPTuoGvQxivHQ
        Y/caW4N88GBf991sKEWlIBwm02of9QksQAhDtrQZYVLh/OvWk4tixguCMBIkTSFc
        lP3ssLzf/4a0Ozg1LfUI11up2sKGgiYhrCzPVySz6K3Ps6mLtsg3WRRJ9i1Tv/Lh
        oP7+jrb6ueWkK0LRy/yoGEvZuL6lDHTAMudFh7/ktrGAD6Zhc4RQcogGLy3cNo3g
        hxHi0OA=
        -----END CERTIFICATE-----

        """

    static let privateKey = """
        -----BEGIN PRIVATE KEY-----
        MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCpZhJ8ODbKQKff
        tCihamqJBQhVA+qzxVYoIoydVkxDxw8RGC+gLz4Ia02NDUSM3ePvUBb0QkpeYwr7
        P8NmGBFTyLEcG6a04ASen/pMf4c+ERTKJN95OhA+aWUwt4VvAGutWo+MNjG3YQ81
        ejakZ+aWKFFjWrCSf2fHijFAmtEg90fKsTkmloZKHIpnOCcWtOPXjTcA7ghaHQHL
        AZrIGKPsNbdzs06+WaMUArcOk1XscpFuBxVFRL4fUQtbzYeM8HuTuW7KIiyBX091
        7pmF0DH63GxDK4sIZMP4q3EXGdo0I7v1LO69KQfiJCKSdRbMbyUw6y4+PIZ7ib67
        SbYd22G9AgMBAAECggEACPlvYUVZIb3rJt7UiDirDDdICbj7Ziq+NcIe0PcRc0XI
        do9hdosKLkgBA8gAKbZXrQYBMU+RwQ5eNpFaOL5trJKlT2fnnQ2BMSYojIT1FUSy
        ZUMu061Pzv6mbb5LQ2YyTizODg+Q8rYhqCOhYXRfsvTP2wOi9x/oz5lyoomRKr3Y
        4S6VtqQbboYnBIsB/pnVlFt7C1tOCUEGSyZ9GhLm8heuJzDLyvnJkSP9rwpDA3zx
        dlxDzt09ustlyp0fRCOeOoNUxgczi/5laoUzsxrQL7QgF6FB9XsfhSYhZmikpyM8
        mXnez2F8UZNCSImdKVIGWLdL4SzN9hgdnVxIV72mAQKBgQDfbeQjZGa+zS6HUSzh
        4KTyKfj4QY+N0VXsmg42aTVAMpkaky9AmgX/FO9pYDsQuPeGb2uBFsCODcx+zOyy
        iMFVsBAIti2w2RG8rH94fvdDKLuSEhTr2c7Zv96VoKrx7LToFTxLFq+Wk23sZkpM
        NGKCyUKtf+THIn1c0hpqUkFQBQKBgQDCF9OnqLA3XiPe5+Ktf4M/rFI5hkYxDifa
        fLC4FuzAjhA1JQRs1N+xWOoZjLoJM3vbj+GczIWeXrTf4BB456h8JZx5cXMv62ds
        YNXlbZfOMV42he3N38JgLJYbbEFDIkefB5LUhD2YAz2YZkavPnNLfj8rLca0hEAE
        TxdH9aFQWQKBgFZCgO/BFYHYiXwotOFH76am2b5O4XNpPHkqSQ5ss+hjIIUIChgw
        3tvKY1wVkPg10SqP3btq41B0t1zFFSUgczP301jprN44EAb9ugD1U9UT5sbQQE+G
        ObwLvY2bCCR6tKVdfXen/IZvyOKZ41lkaBwCQ8HkPJk9EZVCcHxX4WtZAoGAW7MM
        IXMWRiJpCiA+PUA4TzXn5xukP/rzI0uz5lWWZ2b3C1TA4XY1dUGP4KBXKI+1Xcd9
        jSonmuodxIPE5Ip2VKkkY1ARXrt2MoMRq4J6rUUvwMzHzHOCDxQhmzUrJD+m3OCk
        I1mTDCXDzSPNE3CK4kj0KT9IWPL+l8qSMkI/g4kCgYEAvTjfHlWRR7adg8ZVEAcD
        RaJnZJPWIZ9u5Og4kvOKVSsmb3ZhPdH4BvMK4t5LA/zVQk+Rmfh6TIYW1S6qZC5N
        MT7LDB6y5vtQs+Qacew7yg5jMty2aVonNn6RrCEIgrXpRytwXcvx03/0KcPi0H5Y
        +mfXMliWLVgFGsrJSt3hFo8=
        -----END PRIVATE KEY-----

        """
}
