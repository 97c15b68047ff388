(deftest finds-a-user
  (is (= "Ada" (:name (:value (crm/get-user "u_123"))))))

(deftest has-a-page-size
  (is (= 50 crm/page-size)))
